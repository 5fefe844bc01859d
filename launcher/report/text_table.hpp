// TextTable: rows of cells, with columns as wide as their widest cell; and texts for the terminal.
// Results go to stdout through print(), errors through common/log. The rest is pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/machine/terminal_color.hpp"
#include "common/text_style.hpp"

namespace cpprun::ctl {

class TextTable {
 public:
  explicit TextTable(std::vector<std::string> heads) { add(std::move(heads)); }
  // Control characters are replaced by '?': names come from other machines.
  void add(std::vector<std::string> row);
  // The style of one cell of the newest row.
  void paint(size_t column, TextStyle style) { styles_[{rows_.size() - 1, column}] = style; }
  bool is_empty() const { return rows_.size() <= 1; }
  std::string text(bool has_color = false) const;

 private:
  std::vector<std::vector<std::string>> rows_;
  std::map<std::pair<size_t, size_t>, TextStyle> styles_;  // by row and column
};

// The colour of a state of a job or of a node: good, bad, or in between.
TextStyle style_of(std::string_view state);

// "340 us", "12.4 ms", "3.2 s", "12:04", "3:12:04": at most a handful of characters.
std::string duration_text(double seconds);
std::string duration_text_us(int64_t us);
// "340 KiB", "12.4 MiB", "3.2 GiB".
std::string memory_text(int64_t bytes);

// Replaces control characters, which a terminal would execute, by '?'.
std::string clean(std::string text);

// --color; Auto until this is called.
void set_color(ColorMode mode);
// Whether texts on stdout have colours.
bool has_color();

// Replaces control characters except newline and tab: the text may quote peers and workers.
void print(std::string_view text);
// The same; on a terminal, its lines have at most 100 columns (hanging()).
void print_hanging(std::string_view text);
// For the output of workers, for what controls the terminal on purpose, and for text with colours,
// whose parts are printable.
void print_unchanged(std::string_view text);

}  // namespace cpprun::ctl
