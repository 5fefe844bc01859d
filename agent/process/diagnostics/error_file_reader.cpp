#include "agent/process/diagnostics/error_file_reader.hpp"

#include <algorithm>

#include "agent/process/diagnostics/error_file.hpp"
#include "common/limits/agent.hpp"
#include "common/machine/regular_file.hpp"
#include "common/text.hpp"

namespace cpprun {

std::optional<ErrorReport> read_error_file(const std::string& path) {
  const std::optional<RegularFile> file = open_regular_file(path);
  if (!file) return std::nullopt;
  // One byte more than allowed, so that the parser detects an overlong file.
  const size_t size =
      std::min<size_t>(static_cast<size_t>(file->info.st_size), limits::kErrorFileBytes + 1);
  ErrorReport report = parse_error_file(path, read_part(file->fd.get(), 0, size));
  const timespec& changed = file->info.st_mtim;
  report.file_time = WallTime{int64_t{changed.tv_sec} * 1'000'000 + changed.tv_nsec / 1000};
  return report;
}

ErrorReport late_error_file(const std::string& path) {
  return unreadable_error_file(
      path, "its file system did not answer within " + text::seconds(limits::kErrorFileTimeout, 0));
}

}  // namespace cpprun
