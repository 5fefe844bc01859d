// --requeue: asks Slurm to put the job back into the queue. After the run, when no thread of this
// process is needed any more; blocks for a bounded time.
#pragma once

#include "agent/core/config.hpp"

namespace cpprun {

// Runs `scontrol requeue` if wants_requeue(). A failure is a warning: the exit code tells the rest.
void requeue_if_stopped(const ClusterConfig& cluster, int exit_code);

}  // namespace cpprun
