// The worker's side of the line to its agent: heartbeat, readiness, stop requests, error report.
//
// The agent's socket is named by CPPRUN_AGENT; over it comes one shared page
// (rendezvous/protocol/worker/worker_page.hpp). Without an agent (torchrun, or started by hand)
// every call works and does nothing; so does one whose agent does not answer within
// limits::kAgentResponseTimeout. The first call of any of these connects. Costs: a heartbeat is a
// few stores into memory and a look at the clock, no system call. Any thread, but not in signal
// handlers. No Python counterpart.
#pragma once

#include <cstdint>
#include <string_view>

namespace cpprun::worker {

enum class Phase : uint32_t { Starting = 0, Ready, Training, Evaluating, Saving, Ending };

// Training goes on: this step, in this phase, after so many collectives. May be called every step,
// at its end: the first one in training is when recovery is over (docs/events.md, "Phases"). One in
// Phase::Starting before it says that this program tells its steps, and has made none: a request to
// stop that comes now loses nothing.
void heartbeat(int64_t step, Phase phase = Phase::Training);
// By dist once per collective, by DistributedDataParallel once per forward pass whose backward pass
// reduces gradients.
void count_collective();
// Set up and about to train; the agent notes when the last worker of a round has said so. Once;
// later calls do nothing.
void report_ready();
// Why this worker is about to end; the last call counts. At most limits::kWorkerReportBytes are
// sent. Stands in the launcher's summary if there is no error file (error_file.hpp).
void report_to_agent(std::string_view why);
// The agent (or SIGTERM, under cpprun::main) asks to stop: save, then end.
bool should_stop();
// False when there is none.
bool has_agent();

}  // namespace cpprun::worker
