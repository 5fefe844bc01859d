// The exit code that a launcher under a scheduler ends with.
#pragma once

#include "agent/core/config.hpp"
#include "agent/core/effects.hpp"

namespace cpprun {

// srun ends with the highest code of all nodes. A node that leaves while the others finish the job
// must not make a successful job look stopped (kStoppedResumable would have it requeued).
// `others_continue`: this node drains, and the job has enough others.
int code_for_scheduler(const ClusterConfig& cluster, const agent::Finish& finish,
                       bool others_continue, int code);

}  // namespace cpprun
