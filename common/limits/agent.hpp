// Limits: an agent and its workers: stopping, output, what is kept for the failure summary.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>

#include "common/time.hpp"

namespace cpprun::limits {

using namespace std::chrono_literals;

inline constexpr Duration kStopGrace = 30s;  // TERM to KILL; a job saves its snapshot in this time
inline constexpr Duration kLastLook = 5s;    // an agent that was asked to stop waits this long for
                                           // what lies in --snapshot-dir: a file server may be gone
inline constexpr Duration kFolderRemoval =
    5s;  // of a run's temporary folder: a file server that is gone must not keep the agent
inline constexpr int kFolderDepth = 64;  // of it; each level takes a descriptor while it is removed
inline constexpr Duration kSweepGrace = 5s;  // the same for what a worker left behind
inline constexpr Duration kOutputAfterExit =
    1s;  // a stranger may hold the pipe: wait this long for its end
inline constexpr Duration kOutputAfterStop =
    2s;  // the same for a slow console, where other nodes wait for the next round; nothing is lost
inline constexpr Duration kPartialLine = 100ms;  // a line without end is shown after this long
inline constexpr size_t kLineBytes = 64 * 1024;  // longer lines are shown in pieces of this size
inline constexpr size_t kOutputBufferBytes =
    256 * 1024;  // per stream; a slow console slows its writer from then on
inline constexpr size_t kLastLines = 20;  // kept of each worker's stderr for the failure summary
inline constexpr Duration kStartUp =
    10s;  // a worker that ends sooner has not begun its work: a start-up failure
inline constexpr Duration kLastLinesTimeout =
    200ms;  // a blocked output holds up a worker's end no longer
inline constexpr Duration kEndingTimeout =
    1s;  // a host that goes waits this long for what it killed
inline constexpr Duration kReaperTimeout = 1s;  // how long it looks for processes of a dead agent
inline constexpr Duration kKillPatience =
    5s;  // SIGKILL to "it does not end": giving back hundreds of GiB takes the kernel seconds
inline constexpr Duration kUrgentKillPatience =
    2s;  // the same after a second signal: its sender does not want to wait, but a process that
         // only ends slowly must not make its node count as unusable
inline constexpr Duration kStuckLookTakes =
    1s;  // reading what the kernel shows of such processes; that read may block as well
inline constexpr size_t kStuckProcesses = 64;    // are shown one by one, the rest is counted
inline constexpr size_t kStuckThreads = 1024;    // of one process are searched for the blocked one
inline constexpr size_t kStuckStackFrames = 12;  // of its kernel stack are shown: the innermost
inline constexpr Duration kReaperLookTakes =
    200ms;  // reading one process's environment; then it is skipped until the next pass
inline constexpr Duration kReaperSearchTakes =
    10s;  // one pass over all processes, on a slow machine or where many of them block
inline constexpr size_t kErrorFileBytes = 1 << 20;  // a larger error file is cut in the summary
inline constexpr uint64_t kEventsBytes =
    256 << 20;  // of events.jsonl; a worker that commits without end must not fill the disk
inline constexpr size_t kSummaryTextBytes = 16 * 1024;  // per worker on the wire and in the summary
inline constexpr size_t kLastLinesWireBytes =
    8 * 1024;  // of a worker's end: with its two texts of 16 KiB, its failure summary and the rest
               // of a message it must fit into a frame of 64 KiB

}  // namespace cpprun::limits
