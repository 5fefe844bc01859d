// WorkerExit: how a worker ended, built whole in agent/process and carried unchanged to core,
// coordinator and failure summary.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "common/ids.hpp"
#include "common/signals.hpp"
#include "common/time.hpp"

namespace cpprun {

// What a worker wrote about its own end into TORCHELASTIC_ERROR_FILE (torchelastic's JSON, two
// accepted forms), or, if it wrote none, what it told its agent.
struct ErrorReport {
  std::string path;               // empty: told, not written
  std::string message;            // "ValueError: text", or the plain form's text
  std::string traceback;          // py_callstack; empty for the plain form
  std::optional<WallTime> stamp;  // the time stamp that stands inside; whole seconds
  WallTime file_time;             // when the kernel last saw the file change
  bool is_readable = true;        // false: the file exists but is no such JSON; message says why
  bool is_consequence = false;    // by its own account: a peer's end brought it about
};

struct WorkerExit {
  LocalRank local_rank;
  Rank rank;
  int pid = 0;
  int exit_code = 0;         // 0..255, or the negated signal number, as Python's Popen says it
  bool has_core = false;     // the kernel dumped core
  bool is_oom_kill = false;  // SIGKILL, and the kernel's counters say that the OOM killer did it
  bool is_stopped_by_us = false;  // the agent had already asked it to stop
  // It was stopped because it hung, and this is how that showed: "no heartbeat for 12.0 s". Empty:
  // it did not. Others of its round may have hung with it; this is the one to look at.
  std::string hang{};
  Instant started_at;  // monotonic, when it was spawned
  Instant ended_at;    // monotonic, when the kernel told us
  WallTime ended_at_wall;
  std::optional<ErrorReport> error;
  std::vector<std::string> last_lines;  // newest last; of its stderr where that passes the agent

  bool is_hang() const { return !hang.empty(); }
  bool is_success() const { return exit_code == 0 && !is_hang(); }
  // 0: it was none. What another node says may be any number.
  int signal() const { return exit_code < 0 && exit_code >= -kLastSignal ? -exit_code : 0; }
};

// The failure that a job's failure summary names: a worker's end, and where.
struct RootCause {
  std::string node;   // host name
  WorkerExit end;     // if `why` is not empty: of no meaning
  std::string why{};  // what went wrong before any worker ran
};

// What of it goes over the wire: so much that any message that carries it fits into one frame, and
// nothing that would move the cursor of a terminal.
// Senders cut, and so do receivers: not every peer is a sender of ours.
WorkerExit for_the_wire(WorkerExit end);
RootCause for_the_wire(RootCause root_cause);

// A peer's end brought it about, by what the worker itself said (its error, its last lines on
// stderr): Gloo's, NCCL's and TCPStore's words for a connection that a peer has closed.
bool is_consequence(const WorkerExit& end);

// It is known to have failed by itself: not because of a peer, and not because it was stopped.
bool has_own_cause(const WorkerExit& end);

// How long it ran; zero if its times make no sense (they may come from another node).
Duration lived(const WorkerExit& end);

// When it went wrong, on the clock of its node: when it wrote its error, else its end.
Instant happened_at(const WorkerExit& end);

// The kernel's order says who died first; an error file counts with its own stamp only if it was
// written before the first death. Who says himself that a peer's end was the cause yields to those
// who know a cause of their own, and so does who was only stopped. One that hung comes before all
// others. Index of the root cause in `ends`, which holds at least one failure; successes are passed
// over.
size_t root_cause_index(const std::vector<WorkerExit>& ends);

// "exited with code 3", "was killed by SIGKILL (out of memory)", "hung (no heartbeat for 12.0 s)".
std::string describe_end(const WorkerExit& end);

}  // namespace cpprun
