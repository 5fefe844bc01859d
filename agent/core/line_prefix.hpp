// --log-line-prefix-template: the text before each line of a worker on the console. Pure.
#pragma once

#include <string>

#include "agent/core/worker_environment.hpp"

namespace cpprun::agent {

// As torchrun's, "[trainer0]:" without a template.
std::string line_prefix(const AgentConfig& config, const control::RankAssignment& assignment,
                        const LaunchContext& context, int local_rank);

}  // namespace cpprun::agent
