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

std::vector<std::string> split_last_lines(std::string_view tail, size_t count) {
  std::vector<std::string> lines;
  if (tail.ends_with('\n')) tail.remove_suffix(1);
  while (lines.size() < count && !tail.empty()) {
    const size_t start = tail.rfind('\n');
    const bool is_first = start == std::string_view::npos;
    std::string_view line = is_first ? tail : tail.substr(start + 1);
    if (line.ends_with('\r')) line.remove_suffix(1);
    lines.emplace_back(line);
    tail = is_first ? std::string_view() : tail.substr(0, start);
  }
  std::ranges::reverse(lines);
  return lines;
}

std::vector<std::string> read_last_lines(const std::string& path, size_t count, size_t bytes) {
  const std::optional<RegularFile> file = open_regular_file(path);
  if (!file) return {};
  const size_t size = std::min(bytes, static_cast<size_t>(file->info.st_size));
  const off_t from = file->info.st_size - static_cast<off_t>(size);
  return split_last_lines(read_part(file->fd.get(), from, size), count);
}

}  // namespace cpprun
