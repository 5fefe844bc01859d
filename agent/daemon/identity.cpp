#include "agent/daemon/identity.hpp"

#include <sys/random.h>
#include <unistd.h>

#include <filesystem>

#include "agent/process/proc_files.hpp"
#include "common/check.hpp"
#include "common/text.hpp"

namespace cpprun {

std::array<uint8_t, 16> random_bytes() {
  std::array<uint8_t, 16> bytes{};
  CPPRUN_CHECK(getrandom(bytes.data(), bytes.size(), 0) == static_cast<ssize_t>(bytes.size()));
  return bytes;
}

std::string own_host_name() {
  std::array<char, 256> name{};
  if (gethostname(name.data(), name.size() - 1) != 0) return "localhost";
  return name.data();
}

// One kernel, one time namespace.
std::string own_clock_id() {
  std::error_code error;
  const std::string space = std::filesystem::read_symlink("/proc/self/ns/time", error).string();
  const std::string boot = read_small_file("/proc/sys/kernel/random/boot_id");
  return boot.empty() ? "" : std::string(text::strip(boot)) + " " + space;
}

}  // namespace cpprun
