#include "common/thread/process_limits.hpp"

#include <sys/resource.h>

namespace cpprun {

std::string process_limits_text() {
  constexpr rlim_t kKiB = 1024;
  std::string text = "the limits are ";
  rlimit limit{};
  if (::getrlimit(RLIMIT_NPROC, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY)
    text += "ulimit -u " + std::to_string(limit.rlim_cur) + ", ";
  if (::getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY)
    text += "ulimit -v " + std::to_string(limit.rlim_cur / kKiB) + ", ";
  return text + "the cgroup's pids.max";
}

}  // namespace cpprun
