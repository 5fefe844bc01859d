// The metrics of jobs. Names, labels and help lines are an interface: docs/reference/metrics.md
// lists them, and a test compares. Pure.
#pragma once

#include <string>

#include "rendezvous/coordinator/coordinator.hpp"
#include "rendezvous/observe/history_recorder.hpp"
#include "rendezvous/observe/prometheus.hpp"

namespace cpprun {

// Families with a label `run_id` per job. O(nodes).
std::string job_metrics(const Coordinator& coordinator, const HistoryRecorder& job_history,
                        prometheus::Format format = prometheus::Format::Prometheus);

}  // namespace cpprun
