// Limits: torch's file timers.
#pragma once

#include <chrono>
#include <cstddef>

#include "common/time.hpp"

namespace cpprun::limits {

using namespace std::chrono_literals;

inline constexpr size_t kFileTimers = 4'096;             // of one node; a worker has one or two
inline constexpr Duration kFileTimerPollInterval = 60s;  // the wall clock may be set while one runs

}  // namespace cpprun::limits
