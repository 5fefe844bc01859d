// The states of schedulers within another one (SequentialLR, ChainedScheduler): those of scheduler
// i have the names "_schedulers.i.<name>", as in Python. Private to optim.
#pragma once

#include <memory>
#include <vector>

#include "cpprun/optim/lr_scheduler.hpp"

namespace cpprun::optim {

using InnerSchedulers = std::vector<std::shared_ptr<LRScheduler>>;

void add_inner_states(const InnerSchedulers& schedulers, SchedulerState& state);
void load_inner_states(const InnerSchedulers& schedulers, const SchedulerState& state);
// Whether two states have the same entries, that is belong to schedulers of the same kinds.
bool has_same_names(const SchedulerState& a, const SchedulerState& b);

}  // namespace cpprun::optim
