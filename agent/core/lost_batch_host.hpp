// Whether a Slurm job has lost the node of its batch script, and what the agents that are left must
// do. Without that node nothing waits for the end of the job or asks for its requeue, so one of
// them asks. Pure.
#pragma once

#include <string>

#include "agent/core/config.hpp"

namespace cpprun::agent {

struct RequeueAdvice {
  enum class What {
    Wait,     // the batch host is in the job, another node asks, or the answer shows nothing
    Requeue,  // this node asks Slurm to requeue the job
    GiveUp,   // no node may ask; `why` has the reason for a user, unless it is empty
  } what = What::Wait;
  std::string why{};
};

// `shown`: the answer of `scontrol show job`. A node that Slurm has taken out of a job never
// returns to it. Slurm starts a requeued job when the nodes that the job still has are free of it;
// those that it has taken out may live, cut off from Slurm. If they are fewer than `min_nodes`,
// they can't train, so that the requeued job is the only world.
RequeueAdvice requeue_advice(const ClusterConfig& cluster, int min_nodes, const std::string& shown);

// Whether this agent may have to ask: of a job that may be requeued, near the front of the step's
// list, and not on its first node, where the batch script runs.
bool may_ask_for_requeue(const ClusterConfig& cluster);

}  // namespace cpprun::agent
