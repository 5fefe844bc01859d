#include "common/machine/last_lines.hpp"

#include <algorithm>
#include <optional>

#include "common/machine/regular_file.hpp"

namespace cpprun {

size_t last_lines_at(std::string_view text, int64_t lines) {
  if (lines <= 0 || text.empty()) return text.size();
  size_t at = text.size() - 1;  // skips a newline at the end, which begins no further line
  for (int64_t n = 0; at > 0; --at) {
    if (text[at - 1] == '\n' && ++n == lines) return at;
  }
  return 0;
}

void LastLines::feed(std::string_view bytes) {
  const size_t needed = last_lines_at(bytes, static_cast<int64_t>(count_) + 1);
  if (needed > 0) *this = LastLines(count_, line_bytes_);
  bytes.remove_prefix(needed);
  while (!bytes.empty()) {
    const size_t end = std::min(bytes.find_first_of("\r\n"), bytes.size());
    if (end > 0) add_to_line(bytes.substr(0, end));
    if (end == bytes.size()) return;
    has_line_ = true;
    has_return_ = bytes[end] == '\r';
    if (!has_return_) end_line();
    bytes.remove_prefix(end + 1);
  }
}

void LastLines::add_to_line(std::string_view bytes) {
  if (has_return_) line_.clear();
  has_return_ = false;
  has_line_ = true;
  line_.append(bytes.substr(0, line_bytes_ - line_.size()));
}

void LastLines::end_line() {
  lines_.push_back(std::move(line_));
  line_.clear();
  has_line_ = false;
  if (lines_.size() > count_) lines_.pop_front();
}

std::vector<std::string> LastLines::lines() const {
  std::vector<std::string> lines(lines_.begin(), lines_.end());
  if (has_line_) lines.push_back(line_);
  if (lines.size() > count_) lines.erase(lines.begin());
  return lines;
}

std::vector<std::string> read_last_lines(const std::string& path, size_t bytes, LastLines last) {
  const std::optional<RegularFile> file = open_regular_file(path);
  if (!file) return {};
  const size_t size = std::min(bytes, static_cast<size_t>(file->info.st_size));
  const off_t from = file->info.st_size - static_cast<off_t>(size);
  last.feed(read_part(file->fd.get(), from, size));
  return last.lines();
}

}  // namespace cpprun
