// Limits of an agent and its workers: stopping, hangs, output, data for the failure summary,
// torch's file timers, the port for health probes.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>

#include "common/time.hpp"

namespace cpprun::limits {

using namespace std::chrono_literals;

// Stopping workers.
inline constexpr Duration kStopGrace = 30s;  // TERM to KILL; long enough to save a snapshot
inline constexpr Duration kSweepGrace = 5s;  // TERM to KILL for processes that a worker left behind
// From SIGKILL until the process counts as stuck; the kernel needs seconds to free hundreds of GiB.
inline constexpr Duration kKillTimeout = 5s;
// The same after a second stop signal: the user does not want to wait, but a process that only ends
// slowly must not make its node count as unusable.
inline constexpr Duration kUrgentKillTimeout = 2s;
inline constexpr Duration kEndingTimeout = 1s;  // a ProcessHost waits for what it killed
// A worker that ends sooner counts as a start-up failure.
inline constexpr Duration kStartUp = 10s;
// Two failures with the same so many first bytes are the same; they travel in each rank assignment.
inline constexpr size_t kFingerprintBytes = 256;

// Goodput. While workers repeat steps, their heartbeats are read so often: the end of the
// repetition is known to this. It costs wake-ups, and only then.
inline constexpr Duration kRedoPollInterval = 250ms;
// While workers train, the time so far is divided and sent for /metrics so often: as rare as the
// other checks that wake an idle agent, and no later than a scrape of a minute.
inline constexpr Duration kTimeSpentInterval = 60s;

// Files of a run. The file server may be gone and must not keep the agent alive.
inline constexpr Duration kFinalScanTimeout = 5s;  // the last scan of --snapshot-dir before a stop
inline constexpr Duration kFolderRemovalTimeout = 5s;  // removing the run's temporary folder
inline constexpr int kFolderDepth = 64;  // of that folder; removal holds one descriptor per level

// The I/O thread (common/thread/io_thread.hpp).
// Tasks that wait for a file system: a round needs one per failed worker and a few more.
inline constexpr size_t kIoTasks = 8 * 1024;
// The agent's end waits so long for the files that it has written.
inline constexpr Duration kIoEndTimeout = 2s;
// A worker's exit is reported without its error file after this; the other nodes wait for the
// report before they stop.
inline constexpr Duration kErrorFileTimeout = 5s;
// A round starts without log and error files after this; the other nodes' workers wait for it.
inline constexpr Duration kRoundFilesTimeout = 10s;

// A start of a worker that takes longer is reported: the file system of its program does not
// answer. Longer than a program of some hundred MB takes from a cold disk.
inline constexpr Duration kSpawnTimeout = 10s;
// When the workers of a round are stopped, a start that is under way may end within this time, so
// that its worker gets the signal too; then it is killed.
inline constexpr Duration kStopStartTimeout = 2s;
// While workers are being started, the loop takes those that have started after each of these: a
// quick start ends before the first, and a program whose file system does not answer holds back the
// output of the workers before it no longer than this.
inline constexpr Duration kStartsInterval = 50ms;

// The reaper process.
inline constexpr Duration kReaperTimeout = 1s;  // search for processes of a dead agent
// Reading one process's environment; the process is then skipped until the next pass.
inline constexpr Duration kReaperReadTimeout = 200ms;
// One pass over all processes, on a slow machine or with many blocked processes.
inline constexpr Duration kReaperScanTimeout = 10s;

// Between two looks for orphans while the pid of a new helper is not known, for microseconds.
inline constexpr Duration kHelperNameInterval = 10ms;

// The preload process.
// All imports together. Imports of 78 s were seen on parallel file systems; workers that are
// spawned afterwards import as long again.
inline constexpr Duration kPreloadImportTimeout = 300s;
inline constexpr Duration kPreloadCheckTimeout = 10s;  // some thousand stat() on a slow file system
inline constexpr Duration kPreloadForkTimeout = 10s;   // one batch, whose forks take 10 ms each
inline constexpr size_t kPreloadBatch = 32;            // workers of one request, forked together
inline constexpr Duration kPreloadPollInterval =
    200ms;                                  // whether it is stopped, while a round waits
inline constexpr int kPreloadFailures = 3;  // processes in a row that were killed before their use

// Reports about processes that SIGKILL does not end.
inline constexpr Duration kStuckReadTimeout = 1s;  // reading /proc, which may block too
inline constexpr size_t kStuckProcesses = 64;      // shown one by one; the others are counted
inline constexpr size_t kStuckThreads = 1024;      // of one process, searched for the blocked one
inline constexpr size_t kStuckStackFrames = 12;    // of a kernel stack, innermost first

// Threads that read environments of processes, of which each may wait inside the kernel for ever.
inline constexpr size_t kEnvironmentReaders = 8;

// Output of workers.
// How long to wait for the end of a dead worker's pipe; another process may keep it open.
inline constexpr Duration kOutputAfterExit = 1s;
// The same for a slow console while a next round may follow; no output is lost.
inline constexpr Duration kOutputAfterStop = 2s;
// The agent's end waits so long for the output thread, which may wait for a file or terminal.
inline constexpr Duration kOutputEndTimeout = 1s;
inline constexpr Duration kPartialLine = 100ms;           // then a line without end is shown
inline constexpr size_t kLineBytes = 64 * 1024;           // longer lines are shown in pieces
inline constexpr size_t kOutputBufferBytes = 256 * 1024;  // per stream; a full buffer slows writers

// A terminal shows a wait for nodes, or for workers to end, after this time; interval of its count.
inline constexpr Duration kWaitShownAfter = 2s;
inline constexpr Duration kWaitShownInterval = 1s;

// The failure summary.
inline constexpr size_t kLastLines = 40;  // kept of each worker's stderr: a stack with its error
// A blocked output delays the report of a worker's exit no longer than this.
inline constexpr Duration kLastLinesTimeout = 200ms;
inline constexpr size_t kErrorFileBytes = 1 << 20;  // larger error files are cut
inline constexpr size_t kSummaryTextBytes =
    16 * 1024;  // per worker, on the wire and in the summary
// Kept of each of a worker's last lines, such as one with all names of a model's parameters.
inline constexpr size_t kLastLineBytes = 1024;
// Read for them at the end of a log file, for lines may be long.
inline constexpr size_t kLastLinesReadBytes = 1 << 20;
// Of a worker's error in a line about its failure; the summary shows all of it.
inline constexpr size_t kErrorTextBytes = 300;
// A worker's last lines on the wire. With two texts of 16 KiB, a failure summary and the other
// fields they must fit into a frame of 64 KiB.
inline constexpr size_t kLastLinesWireBytes = 8 * 1024;

// Hang detection. A timeout must be longer than a long import, validation or snapshot.
inline constexpr Duration kHangPollInterval = 60s;       // checks wake an idle agent no more often
inline constexpr Duration kHangPollIntervalMin = 100ms;  // however short --hang-timeout is
// With --hang-timeout auto: a user may stop a worker for a moment.
inline constexpr Duration kHangStoppedTimeout = 30s;
inline constexpr Duration kHangSilence = 300s;       // auto: all workers of a node, in training
inline constexpr Duration kHangSilenceLong = 1800s;  // auto: in any other phase
// A section may take so many times as long as the longest so far: a file system under load takes
// three times as long, and a hang is still found before an hour is lost.
inline constexpr int64_t kSectionFactor = 5;
inline constexpr size_t kSectionsKnown = 256;  // by name, of all programs in all rounds
// Flight-recorder dumps at a hang. A dump of torch's 2,000 newest collectives has about 1 MiB; a
// worker writes it in milliseconds, unless it has no CPU time. torchfrtrace imports torch.
inline constexpr Duration kTraceTimeout = 5s;  // all workers of a node together
inline constexpr Duration kTraceToolTimeout = 20s;
inline constexpr size_t kTraceBytes = 16 << 20;           // of the text, and of the pickle
inline constexpr size_t kTraceEntries = 20'000;           // the newest that are compared
inline constexpr Duration kStackCollectionTimeout = 30s;  // all workers of a node together
inline constexpr Duration kStackToolTimeout = 10s;        // one tool at one worker
inline constexpr Duration kOwnStackTimeout = 2s;          // a worker writes its own stack
inline constexpr size_t kStackTextBytes = 64 * 1024;      // of one worker's stack
inline constexpr size_t kProcessesSampled = 256;          // of one worker's descendants

// torch's file timers.
inline constexpr size_t kFileTimers = 4'096;  // of one node; a worker has one or two
// Deadlines are wall clock times, and the wall clock may be set while a timer runs.
inline constexpr Duration kFileTimerPollInterval = 60s;

// The port for health probes.
inline constexpr size_t kHealthProbes = 16;  // at a time; each ends within kHealthRequestTimeout
inline constexpr size_t kHealthRequestBytes = 8 * 1024;  // a probe's request is below 1 KiB
inline constexpr Duration kHealthRequestTimeout = 5s;    // from connection to request
inline constexpr Duration kHealthRetry = 1s;  // after a failed accept; probes wait 1 s or more

// Size of events.jsonl: a worker that commits snapshots without end must not fill the disk.
inline constexpr uint64_t kEventsBytes = 256 << 20;
// An event reaches the file this much later, together with those that follow it meanwhile. Nobody
// reads a file this often; a killed agent loses no more.
inline constexpr Duration kEventsDelay = 10ms;
// Lines that wait for the file system; the events of many rounds.
inline constexpr size_t kEventsPendingBytes = 1 << 20;

// A command of the scheduler, such as scontrol: an overloaded controller answers within seconds.
inline constexpr Duration kSchedulerTimeout = 30s;
inline constexpr size_t kSchedulerAnswerBytes = 1 << 20;  // a job of thousands of nodes lists them
// An agent that has lost its coordinator asks Slurm for so long whether the batch host is lost:
// SlurmdTimeout is 300 s by default, and some sites have twice that. The time between two questions
// doubles: all jobs of a cluster share one controller.
inline constexpr Duration kBatchHostWatch = 1h;
inline constexpr Duration kBatchHostAskFirst = 5s;
inline constexpr Duration kBatchHostAskMax = 60s;
// So many nodes after the first one of a step ask. One of them is left in all likelihood, and a
// thousand nodes must not ask at once.
inline constexpr std::ptrdiff_t kBatchHostWatchers = 4;

// The record of a job's success in the snapshot folder, which a slow network file system may hold.
inline constexpr Duration kJobRecordTimeout = 10s;

}  // namespace cpprun::limits
