#include "cpprun/optim/sequential_lr.hpp"

#include <algorithm>
#include <stdexcept>

#include "cpprun/optim/chained_scheduler.hpp"
#include "cpprun/optim/inner_schedulers.hpp"
#include "cpprun/optim/state_fields.hpp"

namespace cpprun::optim {
namespace {

void check(const torch::optim::Optimizer& optimizer,
           const std::vector<std::shared_ptr<LRScheduler>>& schedulers, size_t milestones) {
  const char* const outer = "SequentialLR";
  const auto refuse = [&](const std::string& text) { refuse_schedulers(outer, text); };
  if (schedulers.empty()) refuse("expects at least one scheduler, but got no scheduler");
  for (size_t i = 0; i < schedulers.size(); ++i) {
    check_inner_kind(outer, schedulers, i);
    if (dynamic_cast<const ChainedScheduler*>(schedulers[i].get())) {
      refuse("does not support ChainedScheduler, but got one" + at_index(i));
    }
    if (i > 0 && dynamic_cast<const SequentialLR*>(schedulers[i].get())) {
      refuse("can begin another SequentialLR only as the first scheduler, but got one" +
             at_index(i));
    }
    check_inner_optimizer(outer, schedulers, i, optimizer, "its optimizer");
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
  check_same_names(state_dict(), state,
                   "SequentialLR with the same kinds of schedulers and as many milestones");
  load_inner_states(schedulers_, state);
  StateFields in = StateFields::loading(state, /*is_trial=*/false);
  fields(in);
}

}  // namespace cpprun::optim
