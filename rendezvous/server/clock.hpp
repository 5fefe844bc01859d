// The clock of the rendezvous server.
#pragma once

#include <ctime>

#include "common/time.hpp"

namespace cpprun {

// CLOCK_BOOTTIME: monotonic, includes time in suspend.
inline Instant server_time() {
  timespec now{};
  clock_gettime(CLOCK_BOOTTIME, &now);
  return Instant::from_nanoseconds(int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec);
}

}  // namespace cpprun
