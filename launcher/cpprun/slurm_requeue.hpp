// --requeue: asks Slurm to put the job back into the queue. After the run, when no thread of this
// process is needed any more; blocks for a bounded time.
#pragma once

#include <string>
#include <vector>

#include "agent/core/config.hpp"

namespace cpprun {

// Runs `scontrol requeue` if wants_requeue(). A failure is a warning: the exit code tells the rest.
// Before that, adds the `excluded` hosts to the ExcNodeList of the job, so that Slurm gives it
// other nodes.
void requeue_if_stopped(const ClusterConfig& cluster, int exit_code,
                        const std::vector<std::string>& excluded);

// The value for ExcNodeList: what `scontrol show job` prints as its value (or "(null)"), and these
// hosts by their short names, as Slurm calls its nodes. Pure.
std::string exclusion_list(const std::string& shown_job, const std::vector<std::string>& hosts);

}  // namespace cpprun
