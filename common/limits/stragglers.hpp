// Limits of the search for slow ranks.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>

#include "common/time.hpp"

namespace cpprun::limits {

// Between two reports of a node, and how long it waits for the first step with a compute time. Two
// seconds find a slow rank before a minute is over, and are half a message for each ping.
inline constexpr Duration kComputeTimesInterval = std::chrono::seconds(2);
inline constexpr Duration kComputeTimesAwaited = std::chrono::seconds(60);

// A rank is slow if its compute time exceeded that of the median rank by this factor, and by this
// difference, in k of its last n steps, in several reports. Noise of a scheduler stays below.
inline constexpr int64_t kSlowPercent = 130;
inline constexpr int64_t kSlowDifferenceUs = 1'000;
inline constexpr int64_t kSlowSteps = 16;
inline constexpr int64_t kSlowWindow = 20;
inline constexpr size_t kSlowReports = 3;
// It is no longer slow when at most so many of its last kSlowWindow steps were.
inline constexpr int64_t kSlowStepsOver = 10;
// With fewer ranks "slower than the others" has no meaning.
inline constexpr size_t kRanksCompared = 3;
// No step takes longer: a month, in microseconds.
inline constexpr int64_t kComputeTimeMaxUs = 2'678'400'000'000;

}  // namespace cpprun::limits
