// What scenario scripts wait for and expect of a cluster, in words.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tests/support/sim/cluster.hpp"

namespace cpprun::sim {

using Words = std::vector<std::string>;

// The newest agent by this name, or by this label ("b'"); null: there is none.
Node* find_node(Cluster& cluster, const std::string& name);

// Does `round 2 runs on a b`, `restarts 1`, `b waits` ... hold now? Nothing: no such condition.
std::optional<bool> holds(Cluster& cluster, const Words& condition);

}  // namespace cpprun::sim
