#include "cpprun/optim/lr_scheduler.hpp"

#include <mutex>
#include <stdexcept>

#include "cpprun/dist/live_objects.hpp"
#include "cpprun/optim/state_fields.hpp"

namespace cpprun::optim {

// Python stores these rates in the groups as "initial_lr"; LibTorch's groups have no such field.
struct InitialRates {
  std::vector<double> rates;
};

namespace {

std::shared_ptr<InitialRates> initial_rates_of(const torch::optim::Optimizer& optimizer) {
  static std::mutex mutex;
  static std::map<const torch::optim::Optimizer*, std::weak_ptr<InitialRates>> known;
  const std::lock_guard lock(mutex);
  std::erase_if(known, [](const auto& entry) { return entry.second.expired(); });
  std::shared_ptr<InitialRates> rates = known[&optimizer].lock();
  if (!rates) known[&optimizer] = rates = std::make_shared<InitialRates>();
  for (size_t i = rates->rates.size(); i < optimizer.param_groups().size(); ++i) {
    rates->rates.push_back(optimizer.param_groups()[i].options().get_lr());
  }
  return rates;
}

}  // namespace

std::vector<double> PerGroup::expand(const char* what, size_t groups) const {
  if (!is_list_) return std::vector<double>(groups, values_[0]);
  if (values_.size() != groups) {
    throw std::invalid_argument(std::string(what) +
                                " must have the same length as the optimizer's parameter groups: "
                                "it has " +
                                std::to_string(values_.size()) + " values, the optimizer " +
                                std::to_string(groups) + " groups");
  }
  return values_;
}

LRScheduler::LRScheduler(torch::optim::Optimizer& optimizer)
    : optimizer_(optimizer), initial_rates_(initial_rates_of(optimizer)) {
  base_lrs_ = initial_rates_->rates;
  ++dist::LiveObjects::schedulers;
}

LRScheduler::~LRScheduler() { --dist::LiveObjects::schedulers; }

std::vector<double> LRScheduler::current_lr() const {
  std::vector<double> rates;
  for (const auto& group : optimizer_.param_groups()) rates.push_back(group.options().get_lr());
  return rates;
}

void LRScheduler::set_lr(const std::vector<double>& lr) {
  auto& groups = optimizer_.param_groups();
  if (lr.size() != groups.size()) {
    throw std::logic_error("the scheduler has " + std::to_string(lr.size()) +
                           " rates for the optimizer's " + std::to_string(groups.size()) +
                           " parameter groups: add groups before the scheduler is constructed");
  }
  for (size_t i = 0; i < lr.size(); ++i) groups[i].options().set_lr(lr[i]);
  last_lr_ = lr;
}

std::vector<double> LRScheduler::initial_lr() const { return initial_rates_->rates; }

void LRScheduler::set_initial_lr(const std::vector<double>& lr) {
  initial_rates_->rates = base_lrs_ = lr;
}

void LRScheduler::step() {
  ++step_count_;
  ++last_epoch_;
  set_lr(get_lr());
}

void LRScheduler::initial_step() {
  step_count_ = 0;
  is_initial_ = true;
  step();
  is_initial_ = false;
}

void LRScheduler::begin_late() {
  last_epoch_ = 0;
  set_lr(closed_form_lr());
}

void LRScheduler::common_fields(StateFields& fields, const char* kind) {
  fields.kind(kind);
  LRScheduler::fields(fields);
}

void LRScheduler::fields(StateFields& fields) {
  fields("last_epoch", last_epoch_);
  fields("_step_count", step_count_);
  fields("base_lrs", base_lrs_);
  fields("_last_lr", last_lr_);
  std::vector<double> rates = current_lr();
  const size_t groups = rates.size();
  fields("lr", rates);
  if (fields.is_saving() || fields.is_trial()) return;
  auto& own = optimizer_.param_groups();
  for (size_t i = 0; i < groups && i < rates.size(); ++i) own[i].options().set_lr(rates[i]);
}

SchedulerState LRScheduler::state_dict() const {
  StateFields out = StateFields::saving();
  const_cast<LRScheduler*>(this)->fields(out);  // only reads while saving
  return out.saved();
}

void LRScheduler::load_state_dict(const SchedulerState& state) {
  StateFields trial = StateFields::loading(state, true);
  fields(trial);
  trial.check_all_used();
  if (!state.count("base_lrs." + std::to_string(group_count() - 1)) ||
      state.count("base_lrs." + std::to_string(group_count()))) {
    throw std::invalid_argument(
        "the state is of an optimizer with another number of parameter "
        "groups than the " +
        std::to_string(group_count()) + " of this one");
  }
  StateFields in = StateFields::loading(state, false);
  fields(in);
}

}  // namespace cpprun::optim
