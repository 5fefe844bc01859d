// Limits of workers that stay alive between two rounds.
#pragma once

#include <chrono>
#include <cstdint>

#include "common/time.hpp"

namespace cpprun::limits {

// From the request to regroup to SIGTERM: a worker on the way to its next collective needs a step's
// time, one inside a collective milliseconds.
inline constexpr Duration kRegroupTimeout = std::chrono::seconds(10);

// Rounds in a row without a step that survivors may leave after a failure of a worker. One within
// the seconds in which workers regroup is most likely another failure of the hardware. If it
// happens twice, the cause may be in the survivors' memory; and each failure costs a restart of the
// budget, of which one with new processes must be left.
inline constexpr int64_t kRoundsWithoutStepMost = 1;

}  // namespace cpprun::limits
