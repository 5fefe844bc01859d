// WorkerExit: how a worker ended. agent/process builds it; the agent core, the coordinator and the
// failure summary use it unchanged. Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "common/ids.hpp"
#include "common/signals.hpp"
#include "common/time.hpp"

namespace cpprun {

// A worker's own report of its failure: TORCHELASTIC_ERROR_FILE (torchelastic's JSON, in two
// forms), or, without such a file, the report that it sent to its agent.
struct ErrorReport {
  std::string path;               // empty: sent to the agent, not written
  std::string message;            // "ValueError: text", or the plain form's text
  std::string traceback;          // py_callstack; empty for the plain form
  std::optional<WallTime> stamp;  // time stamp in the JSON; whole seconds
  WallTime file_time;             // modification time of the file
  bool is_readable = true;        // false: the file is not such a JSON; `message` gives the reason
  bool is_consequence = false;    // the report shows that the failure of a peer caused it
};

struct WorkerExit {
  LocalRank local_rank;
  Rank rank;
  int pid = 0;
  int exit_code = 0;              // 0..255, or the negated signal number, as Python's Popen
  bool has_core = false;          // the kernel dumped core
  bool is_oom_kill = false;       // SIGKILL, and the kernel's counters show an OOM kill
  bool is_stopped_by_us = false;  // the agent had already sent it a stop signal
  // The symptom if the agent stopped the worker because it hung: "no heartbeat for 12.0 s"; else
  // empty. Other workers of the round may have hung too; this one is the most likely cause.
  std::string hang{};
  int64_t step = -1;   // the last that it finished, by its heartbeats; -1: unknown
  Instant started_at;  // spawned
  Instant ended_at;    // reported by the kernel
  WallTime ended_at_wall;
  std::optional<ErrorReport> error;
  std::vector<std::string> last_lines;  // of stderr; newest last

  bool is_hang() const { return !hang.empty(); }
  bool is_success() const { return exit_code == 0 && !is_hang(); }
  // 0 if no signal ended it. Other nodes may send any number as the exit code.
  int signal() const { return exit_code < 0 && exit_code >= -kLastSignal ? -exit_code : 0; }
};

// The failure that a job's failure summary names.
struct RootCause {
  std::string node;   // host name
  WorkerExit end;     // meaningless if `why` is not empty
  std::string why{};  // the failure before any worker ran
};

// Cuts the texts so that any message with them fits into one frame, and removes control characters,
// which could move the cursor of a terminal. Senders and receivers both call it: a peer may not be
// cpprun.
WorkerExit for_the_wire(WorkerExit end);
RootCause for_the_wire(RootCause root_cause);

// Whether the worker's own error or its last lines on stderr name a lost peer as the cause: errors
// of Gloo, NCCL and TCPStore for a connection that a peer has closed.
bool is_consequence(const WorkerExit& end);

// Whether the worker is known to have failed by itself: not because of a peer or a stop.
bool has_own_cause(const WorkerExit& end);

// Run time; zero if the times make no sense (another node may have sent them).
Duration lived(const WorkerExit& end);

// Time of the failure on the clock of its node: when the error file was written, else the exit.
Instant happened_at(const WorkerExit& end);

// Index of the root cause in `ends`. Requires: at least one failure in `ends`.
// A hung worker comes first: all workers lived when the agent found it, so every later exit follows
// from the stop. Next come workers with a cause of their own (has_own_cause()), in the order of
// their failures: the kernel's order, or the stamp of an error file that was written before the
// first death. Workers that lost a peer or were stopped come last.
size_t root_cause_index(const std::vector<WorkerExit>& ends);

// "exited with code 3", "was killed by SIGKILL (out of memory)", "hung (no heartbeat for 12.0 s)".
std::string describe_end(const WorkerExit& end);

}  // namespace cpprun
