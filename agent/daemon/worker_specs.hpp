// The arguments, environment and streams of all workers of a round.
#pragma once

#include <vector>

#include "agent/core/config.hpp"
#include "agent/core/worker_environment.hpp"
#include "agent/process/process_host.hpp"
#include "agent/process/streams/log_folder.hpp"
#include "rendezvous/protocol/control/control.hpp"

namespace cpprun {

// One per local rank, in order. Sets `place.error_file`; `place.token` is the agent's own.
// Requires: `folder` has begun the attempt.
std::vector<WorkerSpec> worker_specs(const AgentConfig& config,
                                     const control::RankAssignment& assignment,
                                     const LogFolder& folder, agent::LaunchContext place);

}  // namespace cpprun
