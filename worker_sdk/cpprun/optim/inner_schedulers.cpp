#include "cpprun/optim/inner_schedulers.hpp"

#include <algorithm>

namespace cpprun::optim {
namespace {

std::string prefix_of(size_t scheduler) { return "_schedulers." + std::to_string(scheduler) + '.'; }

// The entries of `state` whose names begin with `prefix`, without the prefix.
SchedulerState part_of(const SchedulerState& state, const std::string& prefix) {
  SchedulerState part;
  for (auto i = state.lower_bound(prefix); i != state.end() && i->first.starts_with(prefix); ++i) {
    part[i->first.substr(prefix.size())] = i->second;
  }
  return part;
}

}  // namespace

void add_inner_states(const InnerSchedulers& schedulers, SchedulerState& state) {
  for (size_t i = 0; i < schedulers.size(); ++i) {
    for (const auto& [name, value] : schedulers[i]->state_dict()) {
      state[prefix_of(i) + name] = value;
    }
  }
}

void load_inner_states(const InnerSchedulers& schedulers, const SchedulerState& state) {
  for (size_t i = 0; i < schedulers.size(); ++i) {
    schedulers[i]->load_state_dict(part_of(state, prefix_of(i)));
  }
}

bool has_same_names(const SchedulerState& a, const SchedulerState& b) {
  constexpr auto kName = &SchedulerState::value_type::first;
  return std::ranges::equal(a, b, {}, kName, kName);
}

}  // namespace cpprun::optim
