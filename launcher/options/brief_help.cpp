#include <algorithm>

#include "common/text.hpp"
#include "common/text_style.hpp"
#include "launcher/options/option_table.hpp"
#include "launcher/options/parse.hpp"

namespace cpprun {
namespace {

constexpr size_t kWidth = 80;
constexpr size_t kTextColumn = 36;

bool is_common(const OptionRow& row) {
  return std::ranges::any_of(
      common_options(), [&row](const CommonOption& option) { return option.name == row.name; });
}

// "  -q, --quiet                      print errors only".
std::string line_of(const OptionRow& row, std::string_view help) {
  const char letter = row.details.letter;
  std::string line = letter == '\0' ? "      " : std::string("  -") + letter + ", ";
  line += "--" + std::string(row.name);
  if (row.takes_value()) line += " " + std::string(row.value);
  line += std::string(line.size() + 2 < kTextColumn ? kTextColumn - line.size() : 2, ' ');
  return line + std::string(help) + "\n";
}

}  // namespace

std::string brief_help_text() {
  std::string text =
      "usage: cpprun [options] script [arguments of the script]\n\n"
      "  cpprun --nproc-per-node=2 train.py --epochs 3\n\n"
      "Common options, with their defaults:\n";
  for (const CommonOption& option : common_options()) {
    text += line_of(*find_option(option.name), option.help);
  }
  std::string others;
  for (const OptionRow& row : option_table()) {
    if (!is_common(row)) others += (others.empty() ? "" : " ") + ("--" + std::string(row.name));
  }
  return text + "\ncpprun --help explains all options. The others:\n  " +
         indented(others, 2, kWidth) + "\n";
}

}  // namespace cpprun
