// Collects torch's flight-recorder dumps of a node's workers before the agent ends a hang. A thread
// of cpprun_worker in the worker makes the dump, so the main thread need not run. Blocks: not for
// the loop's thread. limits::kTrace... bound time and size.
#pragma once

#include <string>
#include <vector>

#include "agent/process/diagnostics/stack_collector.hpp"

namespace cpprun {

struct FlightDump {
  // As agent/core/hangs/flight_traces.hpp has it; empty: the worker has given none.
  std::string text;
  std::string pickle;  // torch's own, for torchfrtrace
};

// One per worker, in the same order.
std::vector<FlightDump> collect_traces(const std::vector<StackTarget>& targets);

// Writes rank_<rank> into the new `folder`, for each worker with a dump, for torchfrtrace. "": no
// dump, or the folder cannot be written; else the folder.
std::string write_traces(const std::string& folder, const std::vector<StackTarget>& targets,
                         const std::vector<FlightDump>& dumps);

// What torchfrtrace prints about the dumps in `folder`; "": it is not on PATH, or prints nothing in
// limits::kTraceToolTimeout.
std::string run_torchfrtrace(const std::string& folder);

}  // namespace cpprun
