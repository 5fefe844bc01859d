#include "launcher/cpprunctl/logs/time_spec.hpp"

#include <algorithm>
#include <ctime>
#include <string>

#include "common/text.hpp"
#include "launcher/report/tail.hpp"

namespace cpprun::ctl {
namespace {

constexpr int64_t kSecond = 1'000'000;
constexpr int64_t kDay = 86'400 * kSecond;
constexpr size_t kStampBegins = 64;  // room for a level, a rank's prefix or {"ts": " before it
constexpr int64_t kSearchBytes = 256 * 1024;
constexpr int64_t kTimeLookBack = 64
                                  << 20;  // no timestamp within so much: assume that there is none

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// Consumes a text from its front. A failed match consumes nothing.
class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {}
  bool is_at_end() const { return text_.empty(); }

  bool take(char c) {
    if (text_.empty() || text_.front() != c) return false;
    text_.remove_prefix(1);
    return true;
  }
  // Exactly `digits` digits, as a number within the range.
  std::optional<int> number(size_t digits, int least, int most) {
    if (text_.size() < digits) return std::nullopt;
    int value = 0;
    for (const char c : text_.substr(0, digits)) {
      if (!is_digit(c)) return std::nullopt;
      value = value * 10 + (c - '0');
    }
    if (value < least || value > most) return std::nullopt;
    text_.remove_prefix(digits);
    return value;
  }
  // ".250" or ",250" in microseconds; 0 if absent.
  int64_t fraction() {
    if (text_.size() < 2 || (text_[0] != '.' && text_[0] != ',') || !is_digit(text_[1])) return 0;
    text_.remove_prefix(1);
    int64_t value = 0;
    for (int64_t unit = kSecond / 10; !text_.empty() && is_digit(text_[0]); unit /= 10) {
      value += unit * (text_[0] - '0');
      text_.remove_prefix(1);
    }
    return value;
  }
  // Z or +01:00 in minutes east of Greenwich; nothing if absent.
  std::optional<int> zone() {
    if (take('Z')) return 0;
    Reader after = *this;
    const int sign = after.take('+') ? 1 : after.take('-') ? -1 : 0;
    const auto hours = sign == 0 ? std::nullopt : after.number(2, 0, 14);
    if (!hours) return std::nullopt;
    after.take(':');
    const auto minutes = after.number(2, 0, 59);
    if (!minutes) return std::nullopt;
    *this = after;
    return sign * (*hours * 60 + *minutes);
  }

 private:
  std::string_view text_;
};

struct Clock {
  int hour = 0, minute = 0, second = 0;
  int64_t fraction = 0;
};

std::optional<Clock> take_clock(Reader& reader) {
  const auto hour = reader.number(2, 0, 23);
  if (!hour || !reader.take(':')) return std::nullopt;
  const auto minute = reader.number(2, 0, 59);
  if (!minute) return std::nullopt;
  Clock clock{*hour, *minute};
  if (!reader.take(':')) return clock;
  const auto second = reader.number(2, 0, 60);
  if (!second) return std::nullopt;
  clock.second = *second;
  clock.fraction = reader.fraction();
  return clock;
}

std::optional<int64_t> take_moment(Reader& reader) {
  const auto year = reader.number(4, 1970, 9999);
  if (!year || !reader.take('-')) return std::nullopt;
  const auto month = reader.number(2, 1, 12);
  if (!month || !reader.take('-')) return std::nullopt;
  const auto day = reader.number(2, 1, 31);
  if (!day || !(reader.take('T') || reader.take(' '))) return std::nullopt;
  const auto clock = take_clock(reader);
  if (!clock) return std::nullopt;
  tm fields{};
  fields.tm_year = *year - 1900;
  fields.tm_mon = *month - 1;
  fields.tm_mday = *day;
  fields.tm_hour = clock->hour;
  fields.tm_min = clock->minute;
  fields.tm_sec = clock->second;
  fields.tm_isdst = -1;
  const auto zone = reader.zone();
  const int64_t whole =
      zone ? int64_t{::timegm(&fields)} - int64_t{*zone} * 60 : int64_t{::mktime(&fields)};
  return whole * kSecond + clock->fraction;
}

// The last time before `now` at which local clocks showed `clock`.
int64_t last_time_at(const Clock& clock, int64_t now) {
  const time_t seconds = now / kSecond;
  tm fields{};
  ::localtime_r(&seconds, &fields);
  fields.tm_hour = clock.hour;
  fields.tm_min = clock.minute;
  fields.tm_sec = clock.second;
  fields.tm_isdst = -1;
  const int64_t at = int64_t{::mktime(&fields)} * kSecond + clock.fraction;
  return at > now ? at - kDay : at;
}

std::optional<int64_t> length_of(std::string_view words) {
  if (words.empty()) return std::nullopt;
  const char unit = words.back();
  const int64_t seconds = unit == 's'   ? 1
                          : unit == 'm' ? 60
                          : unit == 'h' ? 3600
                          : unit == 'd' ? 86'400
                                        : 0;
  constexpr double kMost = 1e6;  // of any unit; more is taken for a typing error
  const auto count = text::parse_double(words.substr(0, words.size() - 1));
  if (seconds == 0 || !count || *count < 0 || *count > kMost) return std::nullopt;
  return static_cast<int64_t>(*count * static_cast<double>(seconds * kSecond));
}

// The end of the last line older than the wanted time, and whether any line has a timestamp.
struct Scan {
  std::optional<int64_t> older_ends{};
  bool has_times = false;
};

Scan scan_piece(std::string_view piece, int64_t since) {
  Scan scan;
  for (size_t end = piece.size(); end > 0;) {
    const size_t before = end >= 2 ? piece.rfind('\n', end - 2) : std::string_view::npos;
    const size_t begin = before == std::string_view::npos ? 0 : before + 1;
    const auto stamp = stamp_of(piece.substr(begin, end - begin));
    scan.has_times = scan.has_times || stamp;
    if (stamp && *stamp < since) {
      scan.older_ends = static_cast<int64_t>(end);
      return scan;
    }
    end = begin;
  }
  return scan;
}

}  // namespace

Result<int64_t> parse_since(std::string_view words, int64_t now) {
  const std::string_view text = text::strip(words);
  if (const auto length = length_of(text)) return now - *length;
  Reader dated(text);
  if (const auto at = take_moment(dated); at && dated.is_at_end()) return *at;
  Reader today(text);
  if (const auto clock = take_clock(today); clock && today.is_at_end()) {
    return last_time_at(*clock, now);
  }
  return Error{ErrorKind::Usage, "--since " + std::string(words) +
                                     ": give how long ago (30s, 5m, 2h, 1d), a time of day (06:14) "
                                     "or a date and time (2026-11-22T06:14:13)"};
}

std::optional<int64_t> stamp_of(std::string_view line) {
  for (size_t at = 0; at < std::min(kStampBegins, line.size()); ++at) {
    if (!is_digit(line[at]) || (at > 0 && is_digit(line[at - 1]))) continue;
    Reader reader(line.substr(at));
    if (const auto stamp = take_moment(reader)) return stamp;
  }
  return std::nullopt;
}

std::optional<int64_t> behind_older(std::ifstream& file, int64_t since) {
  file.clear();
  file.seekg(0, std::ios::end);
  const int64_t size = file.tellg();
  bool has_times = false;
  for (int64_t end = size; end > 0;) {
    const int64_t from = std::max<int64_t>(0, end - kSearchBytes);
    const std::string piece = read_at(file, from, end - from);
    if (piece.empty()) break;  // the file was truncated meanwhile
    // The part before the first newline is the end of a line in the next piece towards the front,
    // unless the piece has no other newline.
    const size_t first = from == 0 ? 0 : std::min(piece.find('\n'), piece.size() - 1) + 1;
    const Scan scan = scan_piece(std::string_view(piece).substr(first), since);
    if (scan.older_ends) return from + static_cast<int64_t>(first) + *scan.older_ends;
    has_times = has_times || scan.has_times;
    if (!has_times && size - from >= kTimeLookBack) return std::nullopt;
    end = first < piece.size() ? from + static_cast<int64_t>(first) : from;
  }
  return has_times ? std::optional<int64_t>(0) : std::nullopt;
}

}  // namespace cpprun::ctl
