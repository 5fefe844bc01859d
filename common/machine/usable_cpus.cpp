#include "common/machine/usable_cpus.hpp"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/machine/files.hpp"
#include "common/machine/own_cgroups.hpp"
#include "common/text.hpp"

namespace cpprun {
namespace {

int cpus_of_affinity() {
  const auto online = static_cast<int>(::sysconf(_SC_NPROCESSORS_ONLN));
  const int known = std::max(online, CPU_SETSIZE);
  cpu_set_t* set = CPU_ALLOC(static_cast<size_t>(known));
  if (set == nullptr) return online;
  const size_t size = CPU_ALLOC_SIZE(static_cast<size_t>(known));
  const int count = ::sched_getaffinity(0, size, set) == 0 ? CPU_COUNT_S(size, set) : online;
  CPU_FREE(set);
  return count;
}

// cpu.max holds "max PERIOD" or "QUOTA PERIOD", in microseconds.
std::optional<int64_t> quota_in(const std::string& text) {
  const std::vector<std::string> words = text::split(std::string(text::strip(text)), ' ');
  if (words.size() != 2) return std::nullopt;
  const std::optional<int64_t> quota = text::parse_int(words[0]);
  const std::optional<int64_t> period = text::parse_int(words[1]);
  if (!quota || !period || *quota <= 0 || *period <= 0) return std::nullopt;
  return std::max<int64_t>(1, *quota / *period);
}

}  // namespace

int usable_cpus() {
  int64_t usable = cpus_of_affinity();
  for (const std::string& folder : own_cgroups().unified.with_ancestors()) {
    const std::optional<int64_t> quota = quota_in(read_file(folder + "/cpu.max").value_or(""));
    usable = std::min(usable, quota.value_or(usable));
  }
  return static_cast<int>(std::max<int64_t>(1, usable));
}

}  // namespace cpprun
