#include "cpprun/optim/inner_schedulers.hpp"

#include <algorithm>
#include <stdexcept>

#include "cpprun/optim/reduce_lr_on_plateau.hpp"

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

void refuse_schedulers(const std::string& outer, const std::string& why) {
  throw std::invalid_argument(outer + ' ' + why);
}

std::string at_index(size_t i) { return " at index " + std::to_string(i); }

void check_inner_kind(const std::string& outer, const InnerSchedulers& schedulers, size_t i) {
  if (!schedulers[i]) refuse_schedulers(outer, "got no scheduler" + at_index(i));
  if (dynamic_cast<const ReduceLROnPlateau*>(schedulers[i].get())) {
    refuse_schedulers(outer,
                      "does not support ReduceLROnPlateau, which needs a number for each step, "
                      "but got one" +
                          at_index(i));
  }
}

void check_inner_optimizer(const std::string& outer, const InnerSchedulers& schedulers, size_t i,
                           const torch::optim::Optimizer& optimizer, const std::string& wanted) {
  if (&schedulers[i]->optimizer() == &optimizer) return;
  refuse_schedulers(outer, "expects all schedulers to belong to " + wanted + ", but that" +
                               at_index(i) + " belongs to another");
}

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

void check_same_names(const SchedulerState& own, const SchedulerState& state,
                      const std::string& wanted) {
  constexpr auto kName = &SchedulerState::value_type::first;
  if (std::ranges::equal(own, state, {}, kName, kName)) return;
  throw std::invalid_argument("the state is not that of a " + wanted);
}

}  // namespace cpprun::optim
