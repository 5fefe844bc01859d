// What /proc shows of a worker at this moment: whether it goes, and what it and its descendants
// have done since they began. Reads some small files for each of them; any thread.
#pragma once

#include <string>
#include <string_view>

#include "common/worker_observation.hpp"

namespace cpprun {

// Fills in state, cpu and bytes of the worker `sight.pid`. What has ended shows nothing.
void sample_process(WorkerObservation& sight);

// Pure parts, of the texts in /proc/<pid>: status, stat and io.
WorkerObservation::State parse_state(std::string_view status);
struct ResourceUsage {
  Duration cpu{};  // by itself and by children that it has waited for
  uint64_t bytes = 0;
};
ResourceUsage parse_usage(std::string_view stat, std::string_view io, long ticks_per_second);

}  // namespace cpprun
