// Options of the agent's core, with the data that it sends when it joins a job.
#pragma once

#include <string>

#include "agent/core/agent.hpp"
#include "agent/core/config.hpp"
#include "common/ids.hpp"

namespace cpprun {

agent::AgentOptions join_options(const AgentConfig& config, const std::string& host_name,
                                 const std::string& key);

}  // namespace cpprun
