#include "agent/daemon/clock_id.hpp"

#include <filesystem>

#include "agent/process/proc_files.hpp"
#include "common/text.hpp"

namespace cpprun {

// One kernel, one time namespace.
std::string own_clock_id() {
  std::error_code error;
  const std::string space = std::filesystem::read_symlink("/proc/self/ns/time", error).string();
  const std::string boot = read_small_file("/proc/sys/kernel/random/boot_id");
  return boot.empty() ? "" : std::string(text::strip(boot)) + " " + space;
}

}  // namespace cpprun
