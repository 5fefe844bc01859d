#include "common/text_style.hpp"

#include <algorithm>
#include <utility>

#include "common/text.hpp"

namespace cpprun {
namespace {

std::string_view escape_of(TextStyle style) {
  switch (style) {
    case TextStyle::Error: return "\033[1;31m";
    case TextStyle::Warning: return "\033[1;33m";
    case TextStyle::Note: return "\033[1;36m";
    case TextStyle::Good: return "\033[32m";
    case TextStyle::Strong: return "\033[1m";
    case TextStyle::Faint: return "\033[2m";
  }
  return "";
}

}  // namespace

std::string styled(TextStyle style, std::string_view text, bool has_color) {
  if (!has_color || text.empty()) return std::string(text);
  return std::string(escape_of(style)) + std::string(text) + "\033[0m";
}

std::vector<std::string> wrapped(std::string_view text, size_t width) {
  std::vector<std::string> lines;
  for (const std::string& given : text::split(text, '\n')) {
    const size_t blanks = std::min(given.find_first_not_of(' '), given.size());
    std::string line(blanks, ' ');
    bool has_word = false;
    for (const std::string& word : text::split(std::string_view(given).substr(blanks), ' ')) {
      const bool is_full = has_word && line.size() + 1 + word.size() > width;
      if (is_full) lines.push_back(std::exchange(line, word));
      if (!is_full) line += (has_word ? " " : "") + word;
      has_word = true;
    }
    lines.push_back(std::move(line));
  }
  return lines;
}

std::string indented(std::string_view text, size_t indent, size_t width) {
  const size_t room = width > indent ? width - indent : 1;
  return text::join(wrapped(text, room), "\n" + std::string(indent, ' '));
}

std::string hanging(std::string_view text, size_t width) {
  constexpr std::string_view kGap = "  ";
  std::vector<std::string> lines = text::split(text, '\n');
  for (std::string& line : lines) {
    const size_t gap = line.rfind(kGap, width / 2);
    const size_t column = gap == std::string::npos ? 0 : gap + kGap.size();
    line = line.substr(0, column) + indented(line.substr(column), column, width);
  }
  return text::join(lines, "\n");
}

}  // namespace cpprun
