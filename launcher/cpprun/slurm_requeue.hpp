// --requeue: asks Slurm to put the job back into the queue. After the run, when no thread of this
// process is needed any more; blocks for a bounded time.
#pragma once

#include <string>
#include <vector>

#include "agent/core/config.hpp"

namespace cpprun {

// Runs `scontrol requeue` if wants_requeue(). A failure is a warning: the exit code is the job's.
// After that it adds the `excluded` hosts to the ExcNodeList of the job, so that Slurm gives it
// other nodes.
void requeue_if_stopped(const ClusterConfig& cluster, int exit_code,
                        const std::vector<std::string>& excluded);

}  // namespace cpprun
