// Limits: hangs: no limit may be too short for a long import, validation or snapshot.
#pragma once

#include <chrono>
#include <cstddef>

#include "common/time.hpp"

namespace cpprun::limits {

using namespace std::chrono_literals;

inline constexpr Duration kHangLook = 60s;         // an idle agent is woken by looks no more often
inline constexpr Duration kHangLookMin = 100ms;    // nor this often, however short the timeout
inline constexpr Duration kHangStopped = 30s;      // auto: somebody may stop a worker for a moment
inline constexpr Duration kHangQuiet = 300s;       // auto: all of a node, in training
inline constexpr Duration kHangQuietLong = 1800s;  // auto: in any other phase
inline constexpr Duration kEvidenceTakes = 30s;    // for all workers of a node together
inline constexpr Duration kEvidenceToolTakes = 10s;  // for one tool at one worker
inline constexpr Duration kOwnStackTakes = 2s;       // for a worker to write its own stack
inline constexpr size_t kEvidenceBytes = 64 * 1024;  // of one worker's stack
inline constexpr size_t kProcessesLookedAt = 256;    // of one worker's descendants

}  // namespace cpprun::limits
