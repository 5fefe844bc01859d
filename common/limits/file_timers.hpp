// Limits of torch's file timers.
#pragma once

#include <chrono>
#include <cstddef>

#include "common/time.hpp"

namespace cpprun::limits {

using namespace std::chrono_literals;

inline constexpr size_t kFileTimers = 4'096;  // of one node; a worker has one or two
// Deadlines are wall clock times, and the wall clock may be set while a timer runs.
inline constexpr Duration kFileTimerPollInterval = 60s;

}  // namespace cpprun::limits
