// Whose clocks are one clock.
#pragma once

#include <string>

namespace cpprun {

// Of CLOCK_BOOTTIME: the same text in all processes that share it, and in no others.
std::string own_clock_id();

}  // namespace cpprun
