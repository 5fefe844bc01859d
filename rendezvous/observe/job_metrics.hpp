// What /metrics says of jobs. Names, labels and help lines are an interface: docs/metrics.md lists
// each, and a test compares. Pure.
#pragma once

#include <string>

#include "rendezvous/coordinator/coordinator.hpp"
#include "rendezvous/observe/history_recorder.hpp"

namespace cpprun {

// Prometheus text; families of all jobs, each job by its label `run_id`. O(nodes).
std::string job_metrics(const Coordinator& coordinator, const HistoryRecorder& job_history);

}  // namespace cpprun
