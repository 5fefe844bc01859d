// Limits: what `cpprunctl doctor` looks at.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>

#include "common/time.hpp"

namespace cpprun::limits {

using namespace std::chrono_literals;

inline constexpr Duration kProbeConnectTimeout = 2s;  // per address of an endpoint
inline constexpr size_t kProbeAddresses = 8;

// Between nodes.
inline constexpr int64_t kDoctorNodes = 64;  // all with all; of more, each with so many
inline constexpr Duration kDoctorRendezvousTimeout = 60s;  // for the others to come
inline constexpr Duration kDoctorConnectTimeout = 3s;      // to another node
inline constexpr Duration kDoctorPairTimeout = 20s;        // for one node's look at another
inline constexpr Duration kDoctorThroughputDuration =
    500ms;  // of bytes, to see how many get through ...
inline constexpr size_t kDoctorThroughputBytes = 64 << 20;  // ... or so many, whichever comes first
inline constexpr int kDoctorEchoes = 20;               // there and back, for latency and clocks
inline constexpr size_t kDoctorCardBytes = 64 * 1024;  // what one node says to the others

}  // namespace cpprun::limits
