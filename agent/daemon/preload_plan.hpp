// What the preload process needs to know of the job's workers. Pure.
#pragma once

#include <string>

#include "agent/core/config.hpp"
#include "agent/process/preload/preload_process.hpp"

namespace cpprun {

// `token`: of this agent's processes.
PreloadPlan preload_plan(const AgentConfig& config, const std::string& token);

}  // namespace cpprun
