#include "launcher/ssh/plan/tree.hpp"

namespace cpprun::ssh {

std::vector<std::optional<size_t>> tree_parents(const LaunchPlan& plan) {
  std::vector<std::optional<size_t>> parents(plan.hosts.size());
  if (plan.fanout == 0) return parents;
  std::vector<size_t> remote;  // indexes of the hosts in the tree
  for (size_t i = 0; i < plan.hosts.size(); ++i) {
    if (is_local(plan, plan.hosts[i])) continue;
    if (remote.size() >= plan.fanout) parents[i] = remote[remote.size() / plan.fanout - 1];
    remote.push_back(i);
  }
  return parents;
}

}  // namespace cpprun::ssh
