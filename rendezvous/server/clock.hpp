// The one place of the rendezvous server that asks what time it is.
#pragma once

#include <ctime>

#include "common/time.hpp"

namespace cpprun {

// CLOCK_BOOTTIME: monotonic, counts a suspend.
inline Instant server_time() {
  timespec now{};
  clock_gettime(CLOCK_BOOTTIME, &now);
  return Instant::from_nanoseconds(int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec);
}

}  // namespace cpprun
