// What each worker of a round is started with, whole: arguments, environment, streams.
#pragma once

#include <vector>

#include "agent/core/config.hpp"
#include "agent/core/worker_plan.hpp"
#include "agent/process/process_host.hpp"
#include "agent/process/streams/log_folder.hpp"
#include "rendezvous/protocol/control/control.hpp"

namespace cpprun {

// One per local rank, in order. `place.error_file` is filled in here; `place.token` is the agent's
// own. Requires: the folder has begun the attempt.
std::vector<WorkerSpec> worker_specs(const AgentConfig& config,
                                     const control::RankAssignment& assignment,
                                     const LogFolder& folder, agent::LaunchContext place);

}  // namespace cpprun
