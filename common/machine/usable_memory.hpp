// The memory that this process may use. Reads /proc and /sys; any thread.
#pragma once

#include <cstdint>

namespace cpprun {

// Bytes of memory of this machine, or of the tightest cgroup limit if that is less.
uint64_t usable_memory();

}  // namespace cpprun
