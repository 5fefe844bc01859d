// Limits: what a coordinator keeps and tells for those who watch (metrics, the dashboard).
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>

#include "common/time.hpp"

namespace cpprun::limits {

// Rounds of a job that the time line shows; older ones count on, but their story is dropped.
inline constexpr size_t kRoundsReported = 64;
// Of these the newest keep the last lines of who failed first: as a screen shows them.
inline constexpr size_t kRoundsWithLines = 4;
inline constexpr size_t kLinesReported = 20;
inline constexpr size_t kLineBytesReported = 400;
inline constexpr size_t kReasonBytesReported = 1'000;  // of a reason, a failure summary

// A browser draws these without effort, and the text stays below 2 MiB.
inline constexpr size_t kNodesShown = 10'000;
inline constexpr size_t kRanksShown = 32'768;

// Readers of /events. One more is told to come again.
inline constexpr size_t kStreams = 32;
inline constexpr Duration kStreamTick = std::chrono::seconds(1);  // as often as people look
inline constexpr int kStreamUnreadTicks =
    20;  // ticks in which a reader reads nothing of what waits
inline constexpr int kStreamSilentTicks = 15;  // ticks without news; proxies hang up after a minute

// How far workers are, told by agents while somebody reads /events.
inline constexpr Duration kProgressEvery = std::chrono::seconds(1);  // at most
inline constexpr Duration kWatchDuration = std::chrono::seconds(10);
inline constexpr Duration kWatchRenewInterval = std::chrono::seconds(5);
inline constexpr size_t kStepPoints = 900;         // of a job: fifteen minutes at one a second
inline constexpr size_t kProgressWorkers = 1'024;  // of a node; a frame holds three times as many

// The last lines of a worker, told by its agent while somebody who may reads them: of each stream,
// with kLineBytesReported of each line two thirds of a frame at most.
inline constexpr size_t kTailLines = 50;
inline constexpr Duration kTailEvery = std::chrono::seconds(1);
inline constexpr Duration kLogNonceLifetime =
    std::chrono::seconds(30);  // a person types nothing then

}  // namespace cpprun::limits
