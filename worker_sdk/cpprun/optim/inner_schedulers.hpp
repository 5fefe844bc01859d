// Schedulers within another one (SequentialLR, ChainedScheduler): what it refuses, and their
// states. Those of scheduler i have the names "_schedulers.i.<name>", as in Python. Private to
// optim.
//
// `outer` is the name of the outer class. What is refused is a std::invalid_argument.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cpprun/optim/lr_scheduler.hpp"

namespace cpprun::optim {

using InnerSchedulers = std::vector<std::shared_ptr<LRScheduler>>;

[[noreturn]] void refuse_schedulers(const std::string& outer, const std::string& why);
std::string at_index(size_t i);  // " at index i"
// Refuses a missing scheduler i and ReduceLROnPlateau.
void check_inner_kind(const std::string& outer, const InnerSchedulers& schedulers, size_t i);
// Refuses a scheduler i of another optimizer; it must not be missing. `wanted`: the optimizer's
// description.
void check_inner_optimizer(const std::string& outer, const InnerSchedulers& schedulers, size_t i,
                           const torch::optim::Optimizer& optimizer, const std::string& wanted);

void add_inner_states(const InnerSchedulers& schedulers, SchedulerState& state);
void load_inner_states(const InnerSchedulers& schedulers, const SchedulerState& state);
// Refuses a state that has other entries than `own`, that is belongs to schedulers of other kinds.
// `wanted`: whose state `own` is.
void check_same_names(const SchedulerState& own, const SchedulerState& state,
                      const std::string& wanted);

}  // namespace cpprun::optim
