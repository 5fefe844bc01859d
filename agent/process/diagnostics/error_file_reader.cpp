#include "agent/process/diagnostics/error_file_reader.hpp"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "agent/process/diagnostics/error_file.hpp"
#include "common/limits/agent.hpp"
#include "common/machine/unique_fd.hpp"
#include "common/text.hpp"

namespace cpprun {

std::optional<ErrorReport> read_error_file(const std::string& path) {
  // Opening a FIFO would wait for a writer without O_NONBLOCK.
  UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat info {};
  if (!file.is_open() || ::fstat(file.get(), &info) < 0 || !S_ISREG(info.st_mode))
    return std::nullopt;
  // One byte more than allowed, so that the parser detects an overlong file.
  std::string bytes(
      std::min<size_t>(static_cast<size_t>(info.st_size), limits::kErrorFileBytes + 1), '\0');
  size_t size = 0;
  while (size < bytes.size()) {
    const ssize_t got = ::read(file.get(), bytes.data() + size, bytes.size() - size);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    size += static_cast<size_t>(got);
  }
  bytes.resize(size);
  ErrorReport report = parse_error_file(path, bytes);
  report.file_time =
      WallTime{int64_t{info.st_mtim.tv_sec} * 1'000'000 + info.st_mtim.tv_nsec / 1000};
  return report;
}

ErrorReport late_error_file(const std::string& path) {
  return unreadable_error_file(
      path, "its file system did not answer within " + text::seconds(limits::kErrorFileTimeout, 0));
}

}  // namespace cpprun
