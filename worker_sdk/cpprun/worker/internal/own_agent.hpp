// This process's one line to its agent. For the worker's own sources.
#pragma once

#include "cpprun/worker/agent_link.hpp"
#include "cpprun/worker/internal/agent_socket.hpp"

namespace cpprun::worker {

// Connected by the first call; without an agent from then on if there was none. Never destroyed:
// other threads may beat while the program ends.
AgentSocket& own_agent();

// A heartbeat that says nothing of a step being over.
void beat(int64_t step, Phase phase);

}  // namespace cpprun::worker
