// The machine's clocks.
#pragma once

#include <time.h>

#include "common/time.hpp"

namespace cpprun {

inline Duration read_clock(clockid_t clock) {
  timespec t{};
  ::clock_gettime(clock, &t);
  return Duration(int64_t{t.tv_sec} * 1'000'000'000 + t.tv_nsec);
}

// Monotonic; includes the time in suspend.
inline Instant boot_now() { return Instant() + read_clock(CLOCK_BOOTTIME); }

inline WallTime wall_now() { return WallTime{read_clock(CLOCK_REALTIME).count() / 1000}; }

}  // namespace cpprun
