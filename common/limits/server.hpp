// Limits of the rendezvous server.
#pragma once

#include <chrono>
#include <cstddef>

#include "common/time.hpp"

namespace cpprun::limits {

using namespace std::chrono_literals;

// 16 times a rank assignment for one agent, which is below 4 KiB.
inline constexpr size_t kControlFrameBytes = 64 * 1024;
inline constexpr int kControlFrameDepth = 32;        // nested arrays and maps; bounds the recursion
inline constexpr Duration kSilentPeerTimeout = 10s;  // from connection to the first whole command
// Without a further byte of a command that has begun. A busy client that is swapped out or stopped
// for a moment must not lose its connection.
inline constexpr Duration kStalledCommandTimeout = 60s;
// Unread replies of one connection; then the server carries out no further command of it. One reply
// may be longer: a value has up to 1 GiB.
inline constexpr size_t kOutboxBytes = 64 << 20;
inline constexpr size_t kHttpHeaderBytes = 8 * 1024;  // a probe's request is below 1 KiB
inline constexpr Duration kAcceptPause = 100ms;       // after a failed accept
// Well below the usual hard limit of descriptors.
inline constexpr size_t kConnections = 60'000;
// Descriptors reserved below a lower limit, at most a quarter of it: for listeners, and for the
// agent and its workers' output where these run in the same process.
inline constexpr size_t kDescriptorsKept = 256;
inline constexpr Duration kRepeatLogInterval = 60s;  // between equal messages in the log
inline constexpr size_t kLogTextsKept = 64;  // different messages; peers can choose their text
// Messages of the coordinator per kRepeatLogInterval, also equal ones: a job that restarts twice a
// second for a minute logs about 500.
inline constexpr size_t kCoordinatorLogLines = 1'000;

}  // namespace cpprun::limits
