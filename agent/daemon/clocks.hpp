// The one place of the agent that asks what time it is.
#pragma once

#include <string>

#include "common/time.hpp"

namespace cpprun {

Instant boot_time();  // CLOCK_BOOTTIME: monotonic, counts a suspend
WallTime wall_time();

std::string local_stamp(WallTime time);  // "2026-11-21_14:03:59", as torchrun's summary
std::string local_clock(WallTime time);  // "14:03:59.113"

}  // namespace cpprun
