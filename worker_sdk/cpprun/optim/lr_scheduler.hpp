// Learning rate schedulers with state: their common base. Python counterpart:
// torch.optim.lr_scheduler, with its names, defaults and, to the last digit, its numbers.
//
//   optim::CosineAnnealingLR schedule(optimizer, {.T_max = 10});
//   for (...) { ...; optimizer.step(); schedule.step(); }
//
// A scheduler keeps a reference to its optimizer, which must outlive it. One thread. The classes
// are declared in lr_schedulers.hpp.
//
// Base rates are those of the groups when the optimizer's first scheduler was made, as in Python,
// but for as long as one of its schedulers lives: LibTorch's groups have no room for "initial_lr".
// To follow one schedule by another, keep the first alive, or set the groups' rates yourself.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <torch/optim/optimizer.h>

namespace cpprun::optim {

// Numbers by name; what a snapshot keeps of a scheduler. Names are those of Python's attributes;
// lists count up: "base_lrs.0". "lr.0" and "momentum.0" are what the optimizer's groups had, and
// "kind:StepLR" says whose state it is.
using SchedulerState = std::map<std::string, double>;

// A number for all parameter groups, or one for each: `.max_lr = 0.1`, `.max_lr = {0.1, 0.01}`.
class PerGroup {
 public:
  PerGroup(double all) : values_{all} {}  // NOLINT: stands for a number
  PerGroup(std::initializer_list<double> each) : values_(each), is_list_(true) {}
  PerGroup(std::vector<double> each) : values_(std::move(each)), is_list_(true) {}  // NOLINT

  // One for each of `groups`. Throws std::invalid_argument, naming `what`, when a list has another
  // length.
  std::vector<double> expand(const char* what, size_t groups) const;

 private:
  std::vector<double> values_;
  bool is_list_ = false;
};

class StateFields;    // state_fields.hpp: how state_dict and load_state_dict see the members
struct InitialRates;  // the rates that an optimizer's groups had before any scheduler

class LRScheduler {
 public:
  virtual ~LRScheduler();
  LRScheduler(const LRScheduler&) = delete;
  LRScheduler& operator=(const LRScheduler&) = delete;

  // After optimizer.step(), once per training epoch (or batch, as the schedule is meant).
  virtual void step();
  // The rates that the last step has set, one per parameter group.
  std::vector<double> get_last_lr() const { return last_lr_; }
  // Steps taken; Python's name for it.
  int64_t last_epoch() const { return last_epoch_; }
  torch::optim::Optimizer& optimizer() const { return optimizer_; }

  // Everything needed to go on exactly, the groups' present rates (and momenta) included: loading
  // it into a fresh scheduler of a fresh optimizer restores both, in whichever order the
  // optimizer's own state is loaded. Functions of LambdaLR are not kept.
  virtual SchedulerState state_dict() const;
  // As in Python, options are the state's afterwards. Throws std::invalid_argument, naming what
  // does not fit, if `state` is of another kind of scheduler; then nothing is changed.
  virtual void load_state_dict(const SchedulerState& state);

 protected:
  explicit LRScheduler(torch::optim::Optimizer& optimizer);

  // One rate per parameter group, for last_epoch_. May set momenta.
  virtual std::vector<double> get_lr() = 0;
  // The same as a formula of last_epoch_ instead of the present rate, where Python has one;
  // SequentialLR begins its later schedules with it.
  virtual std::vector<double> closed_form_lr() { return get_lr(); }
  // Names the class, and all members that change or were options; each adds its own to its base's.
  virtual void fields(StateFields& fields);
  // The first step of a schedule, by the constructor of the last class or by SequentialLR.
  virtual void initial_step();
  // SequentialLR takes back what initial_step did to the counters, and begins a schedule.
  virtual void undo_initial_step() { --last_epoch_; }
  virtual void begin_late();

  std::vector<double> current_lr() const;
  void set_lr(const std::vector<double>& lr);  // of all groups, and last_lr_
  std::vector<double> initial_lr() const;
  void set_initial_lr(const std::vector<double>& lr);
  size_t group_count() const { return optimizer_.param_groups().size(); }
  // `f(rate, base rate)` of each group.
  template <class F>
  std::vector<double> each_group(F f) const {
    std::vector<double> rates = current_lr();
    for (size_t i = 0; i < rates.size(); ++i) rates[i] = f(rates[i], base_lrs_.at(i));
    return rates;
  }

  torch::optim::Optimizer& optimizer_;
  std::vector<double> base_lrs_, last_lr_;
  int64_t last_epoch_ = -1, step_count_ = 0;
  bool is_initial_ = false;  // within initial_step
  friend class SequentialLR;

 private:
  std::shared_ptr<InitialRates> initial_rates_;  // of all schedulers of one optimizer
};

}  // namespace cpprun::optim

#include "cpprun/optim/lr_schedulers.hpp"
