// Limits of `cpprunctl doctor`.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>

#include "common/time.hpp"

namespace cpprun::limits {

using namespace std::chrono_literals;

inline constexpr Duration kProbeConnectTimeout = 2s;  // per address of an endpoint
inline constexpr size_t kProbeAddresses = 8;

// Checks between nodes. Up to this many nodes check all pairs; of more, each checks so many others.
inline constexpr int64_t kDoctorNodes = 64;
inline constexpr Duration kDoctorConnectTimeout = 3s;  // to another node
inline constexpr Duration kDoctorPairTimeout = 20s;    // all checks of one pair
// The throughput test ends at whichever limit it reaches first.
inline constexpr Duration kDoctorThroughputDuration = 500ms;
inline constexpr size_t kDoctorThroughputBytes = 64 << 20;
inline constexpr int kDoctorEchoes = 20;               // round trips for latency and clock offset
inline constexpr size_t kDoctorCardBytes = 64 * 1024;  // one node's description for the others

}  // namespace cpprun::limits
