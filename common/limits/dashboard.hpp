// Limits of what a coordinator keeps and sends for metrics and the dashboard.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>

#include "common/time.hpp"

namespace cpprun::limits {

// Rounds of a job on the time line. Older rounds are counted only.
inline constexpr size_t kRoundsReported = 64;
// The newest rounds keep the last lines of their root cause, as many as a screen shows.
inline constexpr size_t kRoundsWithLines = 4;
inline constexpr size_t kLinesReported = 20;
inline constexpr size_t kLineBytesReported = 400;
inline constexpr size_t kReasonBytesReported = 1'000;  // of a reason or a failure summary

// A browser draws these without effort, and the text stays below 2 MiB.
inline constexpr size_t kNodesShown = 10'000;
inline constexpr size_t kRanksShown = 32'768;

// Readers of /events. The server asks further readers to retry later.
inline constexpr size_t kStreams = 32;
inline constexpr Duration kStreamTick = std::chrono::seconds(1);  // as often as people look
inline constexpr int kStreamUnreadTicks = 20;  // without a read before the server disconnects
inline constexpr int kStreamSilentTicks =
    15;  // between keep-alives; proxies hang up after a minute

// Progress of the workers, which agents report while /events has readers.
inline constexpr Duration kProgressEvery = std::chrono::seconds(1);  // at most
inline constexpr Duration kWatchDuration = std::chrono::seconds(10);
inline constexpr Duration kWatchRenewInterval = std::chrono::seconds(5);
inline constexpr size_t kStepPoints = 900;         // of a job: fifteen minutes at one a second
inline constexpr size_t kProgressWorkers = 1'024;  // of a node; a frame holds three times as many

// The worker processes of a node. The table of ranks is for small jobs; the map shows all ranks.
inline constexpr Duration kProcessesInterval = std::chrono::seconds(2);  // at least
inline constexpr size_t kRanksListed = 256;
inline constexpr size_t kLogPathBytes = 1'000;  // of a folder of log files; agents omit longer ones

// Last lines of a worker's streams, which its agent sends while an admin reads them. With
// kLineBytesReported per line they fill at most two thirds of a frame.
inline constexpr size_t kTailLines = 50;
inline constexpr Duration kTailEvery = std::chrono::seconds(1);
// Short: the page answers the challenge itself, without a person's help.
inline constexpr Duration kLogNonceLifetime = std::chrono::seconds(30);

}  // namespace cpprun::limits
