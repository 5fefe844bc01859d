// Wall clock times as people read them, in the machine's own time zone.
#pragma once

#include <string>

#include "common/time.hpp"

namespace cpprun {

std::string local_stamp(WallTime time);  // "2026-11-21_14:03:59", as torchrun's summary
std::string local_clock(WallTime time);  // "14:03:59.113"

}  // namespace cpprun
