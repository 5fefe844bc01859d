// What the dashboard is told, as JSON texts: one that changes with the job (nodes, rounds,
// failure summary), one that changes with every step (how far each rank is), what steps took so
// far, and the last lines of a rank.
//
// Nothing of it is escaped for HTML: the page shows text as text. Fields: docs/dashboard.md. Pure.
#pragma once

#include <string>

#include "rendezvous/coordinator/coordinator.hpp"
#include "rendezvous/observe/history_recorder.hpp"
#include "rendezvous/observe/step_history.hpp"

namespace cpprun {

// One line each. O(nodes) and O(ranks), bounded by limits/dashboard.hpp.
std::string dashboard_state(const Coordinator& coordinator, const HistoryRecorder& job_history);
std::string dashboard_progress(const Coordinator& coordinator);
std::string dashboard_steps(const StepHistory& history);
// Only for who has shown that he may: docs/dashboard.md, "Log lines".
std::string dashboard_lines(const Coordinator& coordinator, const JobRank& wanted);

}  // namespace cpprun
