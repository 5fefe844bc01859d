// Limits of hang detection. A timeout must be longer than a long import, validation or snapshot.
#pragma once

#include <chrono>
#include <cstddef>

#include "common/time.hpp"

namespace cpprun::limits {

using namespace std::chrono_literals;

inline constexpr Duration kHangPollInterval = 60s;       // checks wake an idle agent no more often
inline constexpr Duration kHangPollIntervalMin = 100ms;  // however short --hang-timeout is
// With --hang-timeout auto: a user may stop a worker for a moment.
inline constexpr Duration kHangStoppedTimeout = 30s;
inline constexpr Duration kHangSilence = 300s;       // auto: all workers of a node, in training
inline constexpr Duration kHangSilenceLong = 1800s;  // auto: in any other phase
inline constexpr Duration kStackCollectionTimeout = 30s;  // all workers of a node together
inline constexpr Duration kStackToolTimeout = 10s;        // one tool at one worker
inline constexpr Duration kOwnStackTimeout = 2s;          // a worker writes its own stack
inline constexpr size_t kStackTextBytes = 64 * 1024;      // of one worker's stack
inline constexpr size_t kProcessesSampled = 256;          // of one worker's descendants

}  // namespace cpprun::limits
