// Collects the stack of each worker of a node before the agent ends a hang. It changes nothing in a
// worker, except that a tool may stop it for a moment.
//
// It takes the first source that answers: the worker's own stack (worker SDK, cpprun_worker),
// py-spy, gdb. It always adds the kernel's view: state, wait channel, kernel stack where readable.
// limits::kStack... bound its time and size. Blocks: not for the loop's thread.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "common/worker_observation.hpp"

namespace cpprun {

// Descriptors inside the worker: of the pipe that takes a request, and of the file for the dump.
struct TraceFiles {
  int request = -1;
  int file = -1;
};

struct StackTarget {
  WorkerObservation worker;
  std::optional<int> stack_file;      // descriptor inside the worker; unset: none
  std::optional<TraceFiles> trace{};  // of torch's flight recorder; unset: none
};

// One text per worker, in the same order: a few complete, printable lines each.
std::vector<std::string> collect_stacks(const std::vector<StackTarget>& targets);

// One line: "rank 1 (local rank 1, pid 4711): step 7, 12 collectives, last heartbeat 9.1 s ago;
// stopped by a signal".
std::string summary_of(const WorkerObservation& worker);

}  // namespace cpprun
