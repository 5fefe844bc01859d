// Limits of workers that stay alive between two rounds.
#pragma once

#include <chrono>

#include "common/time.hpp"

namespace cpprun::limits {

// From the request to regroup to SIGTERM: a worker on the way to its next collective needs a step's
// time, one inside a collective milliseconds.
inline constexpr Duration kRegroupTimeout = std::chrono::seconds(10);

}  // namespace cpprun::limits
