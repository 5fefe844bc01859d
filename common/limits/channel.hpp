// Limits: the channel between an agent and its workers.
#pragma once

#include <chrono>
#include <cstddef>

#include "common/time.hpp"

namespace cpprun::limits {

using namespace std::chrono_literals;

inline constexpr size_t kWorkerReportBytes = 4096;     // a worker's own words on why it ends
inline constexpr size_t kWorkerConnections = 4;        // of one worker: it, and children of its own
inline constexpr size_t kWorkerConnectionsInAll = 64;  // the same over a whole round
inline constexpr int kWorkerMessages =
    64;  // of one connection in kChannelPause; a save takes two, and its disk a millisecond
inline constexpr int kWorkerLastMessages =
    1'024;  // read after a worker's end; its socket holds a few hundred
inline constexpr int kArenaMemoryPercent =
    50;  // of the usable memory, for all arenas of a node: training needs the rest
inline constexpr int kChannelBurst =
    64;  // connections turned away at a time; then the other business of the agent
inline constexpr Duration kChannelPause =
    100ms;  // after a burst, or without descriptors: no busier than this however many knock
inline constexpr Duration kAgentResponseTimeout =
    2s;  // a worker waits this long for its page, once
inline constexpr Duration kPermissionTimeout =
    10s;  // and so long for other answers: a busy machine must not cost a snapshot

}  // namespace cpprun::limits
