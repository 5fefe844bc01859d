// The limits that keep a process from starting threads and processes.
#pragma once

#include <string>

namespace cpprun {

// For people, after an error EAGAIN: "the limits are ulimit -u 4, ulimit -v 40000 and the cgroup's
// pids.max". Names those that are set.
std::string process_limits_text();

}  // namespace cpprun
