#include "cpprun/optim/sequential_lr.hpp"

#include <algorithm>
#include <stdexcept>

#include "cpprun/optim/chained_scheduler.hpp"
#include "cpprun/optim/inner_schedulers.hpp"
#include "cpprun/optim/reduce_lr_on_plateau.hpp"
#include "cpprun/optim/state_fields.hpp"

namespace cpprun::optim {
namespace {

void check(const torch::optim::Optimizer& optimizer,
           const std::vector<std::shared_ptr<LRScheduler>>& schedulers, size_t milestones) {
  const auto refuse = [](const std::string& text) {
    throw std::invalid_argument("SequentialLR " + text);
  };
  if (schedulers.empty()) refuse("expects at least one scheduler, but got no scheduler");
  for (size_t i = 0; i < schedulers.size(); ++i) {
    const std::string place = " at index " + std::to_string(i);
    if (!schedulers[i]) refuse("got no scheduler" + place);
    if (dynamic_cast<const ReduceLROnPlateau*>(schedulers[i].get())) {
      refuse("does not support ReduceLROnPlateau, which needs a number for each step, but got one" +
             place);
    }
    if (dynamic_cast<const ChainedScheduler*>(schedulers[i].get())) {
      refuse("does not support ChainedScheduler, but got one" + place);
    }
    if (i > 0 && dynamic_cast<const SequentialLR*>(schedulers[i].get())) {
      refuse("can begin another SequentialLR only as the first scheduler, but got one" + place);
    }
    if (&schedulers[i]->optimizer() != &optimizer) {
      refuse("expects all schedulers to belong to its optimizer, but that" + place +
             " belongs to another");
    }
  }
  if (milestones + 1 != schedulers.size()) {
    refuse("expects one scheduler more than milestones, but got " +
           std::to_string(schedulers.size()) + " schedulers and " + std::to_string(milestones) +
           " milestones");
  }
}

}  // namespace

SequentialLR::SequentialLR(torch::optim::Optimizer& optimizer,
                           std::vector<std::shared_ptr<LRScheduler>> schedulers,
                           std::vector<int64_t> milestones)
    : LRScheduler(optimizer),
      schedulers_(std::move(schedulers)),
      milestones_(std::move(milestones)) {
  check(optimizer, schedulers_, milestones_.size());
  last_epoch_ = 0;
  set_lr(initial_lr());
  undo_initial_step();
  schedulers_[0]->initial_step();
  last_lr_ = schedulers_[0]->get_last_lr();
}

// As in Python, reverts the inner schedulers only, and keeps the counter of a nested SequentialLR.
void SequentialLR::undo_initial_step() {
  for (const auto& scheduler : schedulers_) scheduler->undo_initial_step();
}

void SequentialLR::step() {
  ++last_epoch_;
  const auto passed = std::upper_bound(milestones_.begin(), milestones_.end(), last_epoch_);
  const auto at = static_cast<size_t>(passed - milestones_.begin());
  LRScheduler& now = *schedulers_[at];
  if (at > 0 && milestones_[at - 1] == last_epoch_) {
    now.begin_late();
  } else {
    now.step();
  }
  last_lr_ = now.get_last_lr();
}

std::vector<double> SequentialLR::get_lr() {
  throw std::logic_error("SequentialLR has no formula of its own");
}

void SequentialLR::fields(StateFields& fields) {
  fields.kind("SequentialLR");
  fields("last_epoch", last_epoch_);
  fields("_step_count", step_count_);
  fields("_milestones", milestones_);
  fields("_last_lr", last_lr_);
}

SchedulerState SequentialLR::state_dict() const {
  SchedulerState state = LRScheduler::state_dict();
  add_inner_states(schedulers_, state);
  return state;
}

void SequentialLR::load_state_dict(const SchedulerState& state) {
  if (!has_same_names(state_dict(), state)) {
    throw std::invalid_argument(
        "the state is not that of a SequentialLR with the same kinds of schedulers and as many "
        "milestones");
  }
  load_inner_states(schedulers_, state);
  StateFields in = StateFields::loading(state, /*is_trial=*/false);
  fields(in);
}

}  // namespace cpprun::optim
