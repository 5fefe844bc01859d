// Conditions of scenario scripts on the state of a cluster.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tests/support/sim/cluster.hpp"

namespace cpprun::sim {

using Words = std::vector<std::string>;

// The newest agent with this name, or with this label ("b'"); null: there is none.
Node* find_node(Cluster& cluster, const std::string& name);

// Whether `round 2 runs on a b`, `restarts 1`, `b waits` ... holds now. Nothing: no such condition.
std::optional<bool> holds(Cluster& cluster, const Words& condition);

}  // namespace cpprun::sim
