#include "common/machine/usable_memory.hpp"

#include <unistd.h>

#include <algorithm>
#include <optional>

#include "common/machine/files.hpp"
#include "common/machine/own_cgroups.hpp"
#include "common/text.hpp"

namespace cpprun {
namespace {

uint64_t tightest_limit(const CgroupFolder& cgroup, const char* file) {
  uint64_t tightest = UINT64_MAX;
  for (const std::string& each : cgroup.with_ancestors()) {
    std::string limit = read_file(each + "/" + file).value_or("");  // "max", or bytes
    if (!limit.empty() && limit.back() == '\n') limit.pop_back();
    const std::optional<int64_t> bytes = text::parse_int(limit);
    if (bytes && *bytes > 0) tightest = std::min(tightest, static_cast<uint64_t>(*bytes));
  }
  return tightest;
}

}  // namespace

uint64_t usable_memory() {
  const uint64_t machine =
      static_cast<uint64_t>(::sysconf(_SC_PHYS_PAGES)) * static_cast<uint64_t>(::getpagesize());
  return std::min({machine, tightest_limit(own_cgroups().unified, "memory.max"),
                   tightest_limit(own_cgroups().memory, "memory.limit_in_bytes")});
}

}  // namespace cpprun
