// Samples a worker's state, and the CPU time and I/O of the worker and its descendants, from /proc.
// Reads some small files for each process; any thread.
#pragma once

#include <string>
#include <string_view>

#include "common/worker_observation.hpp"

namespace cpprun {

// Fills in state, cpu and bytes of the worker `sight.pid`. Ended processes add nothing.
void sample_process(WorkerObservation& worker);

// Pure parsers of the texts in /proc/<pid>: status, stat and io.
WorkerObservation::State parse_state(std::string_view status);
struct ResourceUsage {
  Duration cpu{};  // of the process and of children that it has reaped
  uint64_t bytes = 0;
};
ResourceUsage parse_usage(std::string_view stat, std::string_view io, long ticks_per_second);

}  // namespace cpprun
