// Limits of the channel between an agent and its workers.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>

#include "common/time.hpp"

namespace cpprun::limits {

using namespace std::chrono_literals;

inline constexpr size_t kWorkerReportBytes = 4096;     // a worker's report of why it ends
inline constexpr size_t kWorkerConnections = 4;        // of one worker and its children
inline constexpr size_t kWorkerConnectionsInAll = 64;  // of all workers of a round
// Messages read from one connection per kChannelPause. A save sends two and takes a millisecond.
inline constexpr int kWorkerMessages = 64;
inline constexpr int kWorkerLastMessages =
    1'024;  // read after an exit; a socket holds a few hundred
// Of one request for checksums: the agent computes them within a second, also on a busy machine.
inline constexpr uint64_t kChecksumBytes = 256 << 20;
inline constexpr size_t kChecksumBlock = 256 << 10;    // read at a time; fits into a second cache
inline constexpr uint64_t kChecksumWindow = 32 << 20;  // mapped at a time; the agent stays small
inline constexpr int kArenaMemoryPercent = 50;  // of the usable memory; training needs the rest
inline constexpr int kChannelBurst = 64;  // connections refused before the loop does other work
// After a burst, or without free descriptors: bounds the load that peers can cause.
inline constexpr Duration kChannelPause = 100ms;
inline constexpr Duration kAgentResponseTimeout = 2s;  // a worker waits once for its progress page
// A worker waits for other replies. A busy machine must not cost a snapshot.
inline constexpr Duration kPermissionTimeout = 10s;

}  // namespace cpprun::limits
