#include "common/text.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <numeric>

namespace cpprun::text {
namespace {

bool is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      size_t changed = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({changed, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row.back();
}

// Characters that change the direction of the text around them: it would read as something else.
bool is_direction(std::string_view character) {
  constexpr std::string_view kArabicLetterMark = "\xD8\x9C";  // U+061C
  if (character == kArabicLetterMark) return true;
  const bool is_punctuation = character.size() == 3 && character[0] == '\xE2';
  if (!is_punctuation) return false;
  const auto last = static_cast<uint8_t>(character[2]);
  if (character[1] == '\x80') {  // U+200E, U+200F, U+202A to U+202E
    return last == 0x8E || last == 0x8F || (last >= 0xAA && last <= 0xAE);
  }
  return character[1] == '\x81' && last >= 0xA6 && last <= 0xA9;  // U+2066 to U+2069
}

// Whether this character is a control character. A lone byte of 0x80 to 0x9F is one too: terminals
// that are not set to UTF-8 take it for one.
bool is_control(std::string_view character) {
  const auto first = static_cast<uint8_t>(character[0]);
  if (character.size() == 1) return first < 0x20 || (first >= 0x7F && first < 0xA0);
  const bool is_second_set = first == 0xC2 && static_cast<uint8_t>(character[1]) < 0xA0;  // U+0080
  return is_second_set || is_direction(character);
}

// Length of the colour sequence at the front of `text`, such as "ESC [ 1;31 m"; 0: there is none.
size_t colour_at(std::string_view text) {
  if (!text.starts_with("\x1b[")) return 0;
  const size_t end = text.find_first_not_of("0123456789;", 2);
  return end != std::string_view::npos && text[end] == 'm' ? end + 1 : 0;
}

// Takes the run of digits at the front of `text` without its leading zeros.
std::string_view take_number(std::string_view& text) {
  size_t n = 0;
  while (n < text.size() && is_digit(text[n])) ++n;
  std::string_view digits = text.substr(0, n);
  text.remove_prefix(n);
  while (digits.size() > 1 && digits.front() == '0') digits.remove_prefix(1);
  return digits;
}

}  // namespace

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  for (;;) {
    size_t at = text.find(separator);
    parts.emplace_back(text.substr(0, at));
    if (at == std::string_view::npos) return parts;
    text.remove_prefix(at + 1);
  }
}

std::vector<std::string> words(std::string_view text) {
  std::vector<std::string> all = split(text, ' ');
  std::erase(all, "");
  return all;
}

std::string_view strip(std::string_view text) {
  while (!text.empty() && is_space(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_space(text.back())) text.remove_suffix(1);
  return text;
}

std::string join(const std::vector<std::string>& parts, std::string_view separator) {
  std::string all;
  for (const std::string& part : parts) {
    if (&part != &parts.front()) all += separator;
    all += part;
  }
  return all;
}

std::optional<int64_t> parse_int(std::string_view text) {
  text = strip(text);
  if (!text.empty() && text.front() == '+') {
    text.remove_prefix(1);
    if (!text.empty() && text.front() == '-') return std::nullopt;
  }
  int64_t value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::optional<double> parse_double(std::string_view text) {
  text = strip(text);
  bool has_plus = !text.empty() && text.front() == '+';
  if (has_plus) text.remove_prefix(1);
  if (has_plus && text.starts_with('-')) return std::nullopt;
  double value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  if (!std::isfinite(value)) return std::nullopt;
  return value;
}

std::string nearest(std::string_view wrong, const std::vector<std::string>& candidates) {
  std::string best;
  // Every word of three letters is near to many others.
  size_t best_distance = (wrong.size() <= 3 ? 1 : std::max<size_t>(2, wrong.size() / 3)) + 1;
  for (const std::string& candidate : candidates) {
    size_t distance = edit_distance(wrong, candidate);
    if (distance < best_distance) {
      best_distance = distance;
      best = candidate;
    }
  }
  return best;
}

std::string cut(std::string_view text, size_t most) {
  if (text.size() <= most) return std::string(text);
  constexpr size_t kLongest = 4;  // bytes of a character
  const auto continues = [&](size_t at) { return (static_cast<uint8_t>(text[at]) & 0xC0) == 0x80; };
  size_t end = most;
  while (end > 0 && most - end < kLongest && continues(end)) --end;
  return std::string(text.substr(0, continues(end) ? most : end));  // not UTF-8: cut anywhere
}

std::string file_name(std::string text, size_t most) {
  std::ranges::replace(text, '/', '_');
  return cut(text, most);
}

std::string_view first_character(std::string_view text) {
  const auto first = static_cast<uint8_t>(text[0]);
  const size_t size = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : first >= 0xC2 ? 2 : 1;
  if (size > text.size()) return text.substr(0, 1);
  for (size_t i = 1; i < size; ++i) {
    if ((static_cast<uint8_t>(text[i]) & 0xC0) != 0x80) return text.substr(0, 1);
  }
  return text.substr(0, size);
}

std::string printable(std::string_view text) {
  std::string plain;
  plain.reserve(text.size());
  while (!text.empty()) {
    if (const size_t colour = colour_at(text); colour > 0) {
      text.remove_prefix(colour);
      continue;
    }
    const std::string_view character = first_character(text);
    const bool is_kept = character == "\n" || character == "\t" || !is_control(character);
    plain += is_kept ? character : "?";
    text.remove_prefix(character.size());
  }
  return plain;
}

std::string one_line(std::string_view text, size_t most) {
  std::string line = cut(printable(text), most);
  for (char& c : line) {
    if (c == '\n' || c == '\t') c = ' ';
  }
  return line;
}

bool has_control(std::string_view text) {
  while (!text.empty()) {
    const std::string_view character = first_character(text);
    if (is_control(character)) return true;
    text.remove_prefix(character.size());
  }
  return false;
}

std::string hex(std::span<const uint8_t> bytes) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string out;
  for (uint8_t byte : bytes) {
    out += kDigits[byte >> 4];
    out += kDigits[byte & 15];
  }
  return out;
}

std::string percent_decoded(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    const std::string_view digits = text.substr(i + 1, 2);
    const char* end = digits.data() + digits.size();
    uint8_t byte = 0;
    const bool is_escape = text[i] == '%' && digits.size() == 2 &&
                           std::from_chars(digits.data(), end, byte, 16).ptr == end;
    out += is_escape ? static_cast<char>(byte) : text[i];
    if (is_escape) i += 2;
  }
  return out;
}

std::optional<std::string_view> value_of(std::string_view entry, std::string_view name) {
  const bool is_named =
      entry.size() > name.size() && entry[name.size()] == '=' && entry.starts_with(name);
  return is_named ? std::optional(entry.substr(name.size() + 1)) : std::nullopt;
}

std::string seconds(Duration duration, int decimals) {
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), "%.*f s", decimals, to_seconds(duration));
  return text.data();
}

std::string count(size_t n, std::string_view noun) {
  return std::to_string(n) + " " + std::string(noun) + (n == 1 ? "" : "s");
}

int natural_compare(std::string_view a, std::string_view b) {
  while (!a.empty() && !b.empty()) {
    if (is_digit(a.front()) && is_digit(b.front())) {
      std::string_view x = take_number(a);
      std::string_view y = take_number(b);
      if (x.size() != y.size()) return x.size() < y.size() ? -1 : 1;
      if (int order = x.compare(y); order != 0) return order;
      continue;
    }
    if (a.front() != b.front()) {
      return static_cast<unsigned char>(a.front()) < static_cast<unsigned char>(b.front()) ? -1 : 1;
    }
    a.remove_prefix(1);
    b.remove_prefix(1);
  }
  return static_cast<int>(!a.empty()) - static_cast<int>(!b.empty());
}

}  // namespace cpprun::text
