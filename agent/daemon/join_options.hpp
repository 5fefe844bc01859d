// Options of the agent's core, with the data that it sends when it joins a job.
#pragma once

#include <string>

#include "agent/core/agent.hpp"
#include "agent/core/config.hpp"
#include "common/ids.hpp"

namespace cpprun {

// The name of this node in its job: the host name; under Kubernetes "POD@MACHINE", if the machine
// is known. A pod keeps its host name when it moves to another machine, and faults belong to
// machines.
std::string node_name(const ClusterConfig& cluster);

agent::AgentOptions join_options(const AgentConfig& config, const std::string& node_name,
                                 const std::string& key);

}  // namespace cpprun
