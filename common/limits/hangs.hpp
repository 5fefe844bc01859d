// Limits: hangs: no limit may be too short for a long import, validation or snapshot.
#pragma once

#include <chrono>
#include <cstddef>

#include "common/time.hpp"

namespace cpprun::limits {

using namespace std::chrono_literals;

inline constexpr Duration kHangPollInterval = 60s;  // an idle agent is woken by looks no more often
inline constexpr Duration kHangPollIntervalMin =
    100ms;  // nor this often, however short the timeout
inline constexpr Duration kHangStoppedTimeout =
    30s;                                        // auto: somebody may stop a worker for a moment
inline constexpr Duration kHangSilence = 300s;  // auto: all of a node, in training
inline constexpr Duration kHangSilenceLong = 1800s;       // auto: in any other phase
inline constexpr Duration kStackCollectionTimeout = 30s;  // for all workers of a node together
inline constexpr Duration kStackToolTimeout = 10s;        // for one tool at one worker
inline constexpr Duration kOwnStackTimeout = 2s;          // for a worker to write its own stack
inline constexpr size_t kStackTextBytes = 64 * 1024;      // of one worker's stack
inline constexpr size_t kProcessesSampled = 256;          // of one worker's descendants

}  // namespace cpprun::limits
