/// @file
/// The worker's connection to its agent: heartbeat, readiness, stop requests, error report.
///
/// CPPRUN_AGENT names the agent's socket. The agent sends one shared memory page over it
/// (rendezvous/protocol/worker/worker_page.hpp). Without an agent (under torchrun, or started by
/// hand), or if the agent does not answer within limits::kAgentResponseTimeout, every function
/// works and does nothing. The first call of any function connects.
///
/// Threads: any, but not in signal handlers. Cost: a heartbeat is a few stores into memory and one
/// reading of the clock, no system call. Python counterpart: the module cpprun_worker.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string_view>

namespace cpprun::worker {

/// What the worker is doing. By default the agent reports a hang after a short silence in Training
/// and Evaluating, after a longer one in the other phases.
enum class Phase : uint32_t { Starting = 0, Ready, Training, Evaluating, Saving, Ending };

/// Reports that the worker has finished step `step` in phase `phase`. Call it at the end of every
/// step. The first call in Phase::Training marks the end of recovery (docs/reference/events.md,
/// "Phases"). A call in Phase::Starting before it states that this program reports its steps and
/// has finished none yet, so that a stop at that time loses nothing.
void heartbeat(int64_t step, Phase phase = Phase::Training);
/// Call it in a step where this rank is about to wait for others: before its first collective. The
/// time since the last heartbeat was compute time, by which cpprun finds slow ranks
/// (docs/how-to/bad-nodes.md). Only the first call after a heartbeat counts.
void compute_done();
/// Counts one collective. dist calls it once per collective, DistributedDataParallel once per
/// forward pass whose backward pass reduces gradients. In a hang the agent names the rank with the
/// fewest.
void count_collective();
/// Reports that setup is over and training begins. The agent records when the last worker of a
/// round reports it. Later calls do nothing.
void report_ready();
/// Reports why this worker is about to end; the last call wins. Sends the first
/// limits::kWorkerReportBytes of `why`. The launcher's summary shows it if there is no error file
/// (error_file.hpp).
void report_to_agent(std::string_view why);
/// True if the agent (or SIGTERM, with MainOptions::handles_sigterm) asks to stop: save, then end.
bool should_stop();
bool has_agent();  ///< whether an agent of cpprun answers; false under torchrun

/// Names a part of the program for the hang detector, from construction to destruction: a worker
/// that stays longer than `limit` in it hangs. Without a limit the agent learns one from the times
/// that the section took before. At most 16 names of at most 40 bytes; further ones are not known
/// to it. Nested on one thread; the inner one counts.
class Section {
 public:
  /// Enters the section. `limit` 0: the agent learns one.
  explicit Section(std::string_view name, std::chrono::nanoseconds limit = {});
  /// Leaves it, in the thread that constructed it.
  ~Section();
  Section(const Section&) = delete;
  Section& operator=(const Section&) = delete;

 private:
  std::optional<size_t> place_;  // in the table; empty: no agent, or no place is left
  int64_t begin_ns_ = 0;
  uint32_t outer_ = 0;  // the section around this one, and its begin
  int64_t outer_begin_ns_ = 0;
};

}  // namespace cpprun::worker
