// The tree of connections of --ssh-tree: which host starts the agent of which. Pure.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "launcher/ssh/plan/launch_plan.hpp"

namespace cpprun::ssh {

// By host, the host that reaches it; nothing: the launcher does. It has a lower index. The launcher
// and each host reach up to `plan.fanout` hosts. This machine's own agent is not in the tree.
std::vector<std::optional<size_t>> tree_parents(const LaunchPlan& plan);

}  // namespace cpprun::ssh
