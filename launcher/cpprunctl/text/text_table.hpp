// TextTable: rows of cells, with columns as wide as their widest cell; and texts for the terminal.
// Results go to stdout through print(), errors through common/log. The rest is pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace cpprun::ctl {

class TextTable {
 public:
  explicit TextTable(std::vector<std::string> heads) { add(std::move(heads)); }
  // Control characters are replaced by '?': names come from other machines.
  void add(std::vector<std::string> row);
  bool is_empty() const { return rows_.size() <= 1; }
  std::string text() const;

 private:
  std::vector<std::vector<std::string>> rows_;
};

// "340 us", "12.4 ms", "3.2 s", "12:04", "3:12:04": at most a handful of characters.
std::string duration_text(double seconds);
// "340 KiB", "12.4 MiB", "3.2 GiB".
std::string memory_text(int64_t bytes);

// Replaces control characters, which a terminal would execute, by '?'.
std::string clean(std::string text);

// Replaces control characters except newline and tab: the text may quote peers and workers.
void print(std::string_view text);
// For the output of workers, and for what controls the terminal on purpose.
void print_unchanged(std::string_view text);

}  // namespace cpprun::ctl
