#include "cpprun/optim/chained_scheduler.hpp"

#include <stdexcept>

#include "cpprun/optim/inner_schedulers.hpp"
#include "cpprun/optim/state_fields.hpp"

namespace cpprun::optim {
namespace {

torch::optim::Optimizer& common_optimizer(const InnerSchedulers& schedulers) {
  const char* const outer = "ChainedScheduler";
  if (schedulers.empty()) {
    refuse_schedulers(outer, "expects at least one scheduler to be chained, but got no scheduler");
  }
  for (size_t i = 0; i < schedulers.size(); ++i) {
    check_inner_kind(outer, schedulers, i);
    check_inner_optimizer(outer, schedulers, i, schedulers[0]->optimizer(), "the same optimizer");
  }
  return schedulers[0]->optimizer();
}

}  // namespace

ChainedScheduler::ChainedScheduler(std::vector<std::shared_ptr<LRScheduler>> schedulers)
    : LRScheduler(common_optimizer(schedulers)), schedulers_(std::move(schedulers)) {
  last_lr_ = current_lr();
}

void ChainedScheduler::step() {
  for (const auto& scheduler : schedulers_) scheduler->step();
  last_lr_ = current_lr();
}

std::vector<double> ChainedScheduler::get_lr() {
  throw std::logic_error("ChainedScheduler has no formula of its own");
}

void ChainedScheduler::fields(StateFields& fields) {
  fields.kind("ChainedScheduler");
  fields("_last_lr", last_lr_);
}

SchedulerState ChainedScheduler::state_dict() const {
  SchedulerState state = LRScheduler::state_dict();
  add_inner_states(schedulers_, state);
  return state;
}

void ChainedScheduler::load_state_dict(const SchedulerState& state) {
  check_same_names(state_dict(), state, "ChainedScheduler with the same kinds of schedulers");
  load_inner_states(schedulers_, state);
  StateFields in = StateFields::loading(state, /*is_trial=*/false);
  fields(in);
}

}  // namespace cpprun::optim
