// The dashboard's data as JSON: the job's state (nodes, rounds, failure summary), the progress of
// each rank, the history of step times, and the last lines of a rank. Texts are not escaped for
// HTML: the page inserts them as text. Fields: docs/how-to/dashboard.md. Pure.
#pragma once

#include <string>

#include "rendezvous/coordinator/coordinator.hpp"
#include "rendezvous/observe/history_recorder.hpp"
#include "rendezvous/observe/step_history.hpp"

namespace cpprun {

// One line each. O(nodes) and O(ranks), bounded by limits/dashboard.hpp.
std::string dashboard_state(const Coordinator& coordinator, const HistoryRecorder& job_history);
std::string dashboard_progress(const Coordinator& coordinator);
// The process, memory and log folder of each of the first limits::kRanksListed ranks.
std::string dashboard_workers(const Coordinator& coordinator);
std::string dashboard_steps(const StepHistory& history);
// For authenticated readers only: docs/how-to/dashboard.md, "Log lines".
std::string dashboard_lines(const Coordinator& coordinator, const JobRank& wanted);

}  // namespace cpprun
