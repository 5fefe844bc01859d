// The CPUs that this process may use: its affinity mask, and the quotas of its cgroup (v2) and of
// the cgroup's ancestors. Reads /proc and /sys; any thread.
#pragma once

namespace cpprun {

// At least 1. A quota of 2.5 CPUs counts as 2.
int usable_cpus();

}  // namespace cpprun
