#include "launcher/report/text_table.hpp"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "common/text.hpp"

namespace cpprun::ctl {
namespace {

ColorMode chosen_mode = ColorMode::Auto;

}  // namespace

void TextTable::add(std::vector<std::string> row) {
  for (std::string& word : row) word = clean(std::move(word));
  rows_.push_back(std::move(row));
}

std::string TextTable::text(bool has_color) const {
  std::vector<size_t> widths;
  for (const auto& row : rows_) {
    widths.resize(std::max(widths.size(), row.size()));
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string out;
  for (size_t number = 0; number < rows_.size(); ++number) {
    const auto& row = rows_[number];
    for (size_t i = 0; i < row.size(); ++i) {
      const auto found = styles_.find({number, i});
      const bool is_styled = number == 0 || found != styles_.end();
      const TextStyle style = number == 0 ? TextStyle::Faint
                              : is_styled ? found->second
                                          : TextStyle::Strong;
      out += styled(style, row[i], has_color && is_styled);
      if (i + 1 < row.size()) out.append(widths[i] - row[i].size() + 2, ' ');
    }
    out += '\n';
  }
  return out;
}

std::string duration_text(double seconds) {
  constexpr double kLongest = 1e9;
  if (!std::isfinite(seconds) || seconds < 0 || seconds > kLongest) return "?";
  char text[48];
  const auto whole = static_cast<long long>(seconds);
  if (seconds < 0.001) {
    std::snprintf(text, sizeof text, "%.0f us", seconds * 1e6);
  } else if (seconds < 1) {
    std::snprintf(text, sizeof text, "%.1f ms", seconds * 1e3);
  } else if (seconds < 60) {
    std::snprintf(text, sizeof text, "%.1f s", seconds);
  } else if (seconds < 3600) {
    std::snprintf(text, sizeof text, "%lld:%02lld", whole / 60, whole % 60);
  } else {
    std::snprintf(text, sizeof text, "%lld:%02lld:%02lld", whole / 3600, whole / 60 % 60,
                  whole % 60);
  }
  return text;
}

std::string duration_text_us(int64_t us) { return duration_text(static_cast<double>(us) / 1e6); }

std::string memory_text(int64_t bytes) {
  if (bytes < 0) return "?";
  constexpr int64_t kKiB = 1024;
  constexpr double kMiB = 1 << 20;
  constexpr double kGiB = 1 << 30;
  char text[48];
  const auto size = static_cast<double>(bytes);
  if (size < kMiB) {
    std::snprintf(text, sizeof text, "%lld KiB", static_cast<long long>(bytes / kKiB));
  } else if (size < kGiB) {
    std::snprintf(text, sizeof text, "%.1f MiB", size / kMiB);
  } else {
    std::snprintf(text, sizeof text, "%.1f GiB", size / kGiB);
  }
  return text;
}

std::string clean(std::string text) {
  text = text::printable(text);
  for (char& c : text) {
    if (c == '\n' || c == '\t') c = '?';
  }
  return text;
}

TextStyle style_of(std::string_view state) {
  if (state == "running" || state == "succeeded") return TextStyle::Good;
  if (state == "failed" || state == "dead" || state == "silent") return TextStyle::Error;
  return TextStyle::Warning;
}

void set_color(ColorMode mode) { chosen_mode = mode; }

bool has_color() { return wants_color(STDOUT_FILENO, chosen_mode); }

void print(std::string_view text) { print_unchanged(text::printable(text)); }

void print_hanging(std::string_view text) {
  print(::isatty(STDOUT_FILENO) == 1 ? hanging(text, kConsoleColumns) : std::string(text));
}

void print_unchanged(std::string_view text) { std::fwrite(text.data(), 1, text.size(), stdout); }

}  // namespace cpprun::ctl
