// What /proc shows of a worker at this moment: whether it goes, and what it and its descendants
// have done since they began. Reads some small files for each of them; any thread.
#pragma once

#include <string>
#include <string_view>

#include "common/worker_sight.hpp"

namespace cpprun {

// Fills in state, cpu and bytes of the worker `sight.pid`. What has ended shows nothing.
void look_at_process(WorkerSight& sight);

// Pure parts, of the texts in /proc/<pid>: status, stat and io.
WorkerSight::State parse_state(std::string_view status);
struct Used {
  Duration cpu{};  // by itself and by children that it has waited for
  uint64_t bytes = 0;
};
Used parse_used(std::string_view stat, std::string_view io, long ticks_per_second);

}  // namespace cpprun
