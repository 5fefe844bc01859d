#include <algorithm>
#include <numeric>
#include <set>

#include "cpprun/dist/backend/backend_map.hpp"
#include "cpprun/dist/group/group_registry.hpp"
#include "cpprun/dist/group/make_group.hpp"
#include "cpprun/dist/init/init_plan.hpp"

namespace cpprun::dist {
namespace {

constexpr const char* kCall = "new_group";

// Sorts the ranks, as Python does. An empty list means all ranks.
std::vector<int> checked(std::vector<int> ranks, int world_size) {
  if (ranks.empty()) {
    ranks.resize(static_cast<size_t>(world_size));
    std::iota(ranks.begin(), ranks.end(), 0);
  }
  std::sort(ranks.begin(), ranks.end());
  for (size_t i = 0; i < ranks.size(); ++i) {
    if (ranks[i] < 0 || ranks[i] >= world_size) {
      throw DistArgumentError(std::string(kCall) + ": rank " + std::to_string(ranks[i]) +
                              " does not exist in a world of " + std::to_string(world_size));
    }
    if (i > 0 && ranks[i] == ranks[i - 1]) {
      throw DistArgumentError(std::string(kCall) + ": rank " + std::to_string(ranks[i]) +
                              " stands in the list twice");
    }
  }
  return ranks;
}

// Refuses options that only the default group has.
void check_options(const InitOptions& options) {
  if (options.store || !options.init_method.empty() || options.rank != -1 ||
      options.world_size != -1) {
    throw DistArgumentError(
        "new_group: store, init_method, rank and world_size are the default group's");
  }
  check_timeout(kCall, options);
}

int place_of(int global_rank, const std::vector<int>& ranks) {
  const auto found = std::find(ranks.begin(), ranks.end(), global_rank);
  return found == ranks.end() ? -1 : static_cast<int>(found - ranks.begin());
}

// Ranks of this node; without a launcher, all. An empty variable counts as missing.
int local_world_size(int world) {
  const auto text = own_variable("LOCAL_WORLD_SIZE");
  if (!text || text->empty()) return world;
  return whole_number("new_subgroups", *text, "LOCAL_WORLD_SIZE");
}

}  // namespace

ProcessGroup new_group(const std::vector<int>& ranks, InitOptions options) {
  const auto parent = resolve({}, kCall);
  check_options(options);
  GroupPlan plan;
  plan.registration.ranks = checked(ranks, static_cast<int>(parent->ranks.size()));
  plan.registration.rank = place_of(parent->rank, plan.registration.ranks);
  plan.backend = options.backend.empty() ? parent->backend : options.backend;
  parse_backend(plan.backend);
  // Every rank takes a name, member or not, because names are counted and part of the keys.
  plan.name = registry::next_name();
  plan.shown_name = options.group_name.empty() ? plan.name : options.group_name;
  plan.registration.call = std::string(kCall) + " '" + plan.shown_name + "'";
  {
    const std::lock_guard lock(parent->mutex);
    plan.registration.store = parent->store;
  }
  plan.timeout = options.timeout.value_or(default_timeout(plan.backend));
  plan.options = options.pg_options;
  plan.device = options.device_id;
  plan.master_address = own_variable("MASTER_ADDR").value_or("");
  const auto state = make_group(plan);
  state->device = options.device_id ? options.device_id : parent->device;
  registry::add(state);
  return ProcessGroup(state);
}

Subgroups new_subgroups(std::optional<int> group_size, const InitOptions& options) {
  const int world = get_world_size();
  const int size = group_size ? *group_size : local_world_size(world);
  if (size <= 0 || world % size != 0) {
    throw DistArgumentError("new_subgroups: the world size " + std::to_string(world) +
                            " must be divisible by group_size, which is " + std::to_string(size));
  }
  std::vector<std::vector<int>> lists(static_cast<size_t>(world / size));
  for (int rank = 0; rank < world; ++rank) lists[static_cast<size_t>(rank / size)].push_back(rank);
  return new_subgroups_by_enumeration(lists, options);
}

Subgroups new_subgroups_by_enumeration(const std::vector<std::vector<int>>& ranks_per_subgroup_list,
                                       const InitOptions& options) {
  std::set<int> seen;
  for (const auto& ranks : ranks_per_subgroup_list) {
    if (ranks.empty()) throw DistArgumentError("new_subgroups_by_enumeration: a list is empty");
    for (const int rank : ranks) {
      if (seen.insert(rank).second) continue;
      throw DistArgumentError("new_subgroups_by_enumeration: rank " + std::to_string(rank) +
                              " stands in two lists");
    }
  }
  Subgroups groups;
  for (const auto& ranks : ranks_per_subgroup_list) {
    groups.all.push_back(new_group(ranks, options));
    if (groups.all.back().rank() >= 0) groups.current = groups.all.back();
  }
  return groups;
}

}  // namespace cpprun::dist
