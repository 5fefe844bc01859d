#include <algorithm>
#include <numeric>

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

}  // namespace cpprun::dist
