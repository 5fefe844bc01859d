// The two clocks of agent/process: monotonic time that includes a suspended machine's sleep, and
// wall clock time.
#pragma once

#include <time.h>

#include "common/time.hpp"

namespace cpprun {

inline Instant boot_now() {
  timespec t{};
  ::clock_gettime(CLOCK_BOOTTIME, &t);
  return Instant::from_nanoseconds(int64_t{t.tv_sec} * 1'000'000'000 + t.tv_nsec);
}

inline WallTime wall_now() {
  timespec t{};
  ::clock_gettime(CLOCK_REALTIME, &t);
  return WallTime{int64_t{t.tv_sec} * 1'000'000 + t.tv_nsec / 1000};
}

}  // namespace cpprun
