// NodeSpec: what a simulated node is, from its start to its end.
#pragma once

#include <string>

#include "agent/core/agent.hpp"
#include "tests/support/sim/host_clock.hpp"
#include "tests/support/sim/network.hpp"

namespace cpprun::sim {

struct NodeSpec {
  HostId host = 1;
  HostClock clock;
  agent::AgentOptions agent;
  bool is_own = false;  // the coordinator runs in the same process
  std::string label;    // its name in traces
  bool has_control_port = true;
};

}  // namespace cpprun::sim
