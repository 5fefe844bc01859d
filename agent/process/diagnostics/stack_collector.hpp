// Evidence: what each worker of a node is doing, looked at before a hang is ended. Nothing of a
// worker is changed by it but that it may be halted for a moment.
//
// Sources, the first that answers: the worker's own stack (worker SDK, cpprun_worker), py-spy, gdb;
// and always what the kernel says: state, wait channel, its own stack where we may read it. Bounded
// in time and size by limits::kEvidence…. Blocks: for a thread that may wait.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "common/worker_observation.hpp"

namespace cpprun {

struct StackTarget {
  WorkerObservation worker;
  std::optional<int> stack_file;  // descriptor inside the worker; nothing: it has none
};

// One text per worker, in their order: some lines each, whole and printable.
std::vector<std::string> collect_stacks(const std::vector<StackTarget>& witnesses);

// One line: "rank 1 (local rank 1, pid 4711): step 7, training, 12 collectives, last heartbeat 9.1
// s ago; stopped; waits in futex_wait".
std::string summary_of(const WorkerObservation& worker);

}  // namespace cpprun
