// Limits of the agent's port for health probes.
#pragma once

#include <chrono>
#include <cstddef>

#include "common/time.hpp"

namespace cpprun::limits {

using namespace std::chrono_literals;

inline constexpr size_t kHealthProbes = 16;  // at a time; each ends within kHealthRequestTimeout
inline constexpr size_t kHealthRequestBytes = 8 * 1024;  // a probe's request is below 1 KiB
inline constexpr Duration kHealthRequestTimeout = 5s;    // from connection to request
inline constexpr Duration kHealthRetry = 1s;  // after a failed accept; probes wait 1 s or more

}  // namespace cpprun::limits
