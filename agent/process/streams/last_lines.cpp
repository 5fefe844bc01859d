#include "agent/process/streams/last_lines.hpp"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "common/machine/unique_fd.hpp"

namespace cpprun {

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
  // Opening a FIFO would wait for a writer without O_NONBLOCK.
  const UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  struct stat info {};
  if (!file.is_open() || ::fstat(file.get(), &info) < 0 || !S_ISREG(info.st_mode)) return {};
  std::string tail(std::min(bytes, static_cast<size_t>(info.st_size)), '\0');
  const off_t from = info.st_size - static_cast<off_t>(tail.size());
  size_t size = 0;
  while (size < tail.size()) {
    const auto at = from + static_cast<off_t>(size);
    const ssize_t got = ::pread(file.get(), tail.data() + size, tail.size() - size, at);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    size += static_cast<size_t>(got);
  }
  return split_last_lines(std::string_view(tail).substr(0, size), count);
}

}  // namespace cpprun
