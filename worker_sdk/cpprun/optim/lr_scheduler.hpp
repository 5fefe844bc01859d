/// @file
/// LRScheduler: the base class of the learning rate schedulers. Python counterpart:
/// torch.optim.lr_scheduler, with its names and defaults, and bitwise equal rates.
///
///     optim::CosineAnnealingLR schedule(optimizer, {.T_max = 10});
///     for (...) { ...; optimizer.step(); schedule.step(); }
///
/// A scheduler holds a reference to its optimizer, which must outlive it. One thread.
/// lr_schedulers.hpp declares the classes.
///
/// As in Python, base rates are those of the groups when the optimizer's first scheduler was
/// constructed. LibTorch's groups cannot store "initial_lr", so the base rates are forgotten when
/// the optimizer's last scheduler is destroyed. To use one schedule after another, keep the first
/// alive, or set the groups' rates.
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

/// The state of a scheduler, as numbers by name. Names are those of Python's attributes, with an
/// index for lists: "base_lrs.0". "lr.0" and "momentum.0" are values of the optimizer's groups;
/// "kind:StepLR" names the class.
using SchedulerState = std::map<std::string, double>;

/// One number for all parameter groups, or one for each: `.max_lr = 0.1`, `.max_lr = {0.1, 0.01}`.
class PerGroup {
 public:
  /// One number for all groups.
  PerGroup(double all) : values_{all} {}  // NOLINT: implicit on purpose
  /// @{
  /// One number for each group, in the order of the optimizer's groups.
  PerGroup(std::initializer_list<double> each) : values_(each), is_list_(true) {}
  PerGroup(std::vector<double> each) : values_(std::move(each)), is_list_(true) {}  // NOLINT
  /// @}

  /// One number for each of `groups`. Throws std::invalid_argument that names `what` if a list has
  /// another length.
  std::vector<double> expand(const char* what, size_t groups) const;

 private:
  std::vector<double> values_;
  bool is_list_ = false;
};

class StateFields;    ///< state_fields.hpp: the members that state_dict() saves
struct InitialRates;  ///< the rates that an optimizer's groups had before any scheduler

/// The base class of the learning rate schedulers, also for schedulers of your own. Python
/// counterpart: torch.optim.lr_scheduler.LRScheduler. One thread.
class LRScheduler {
 public:
  /// The optimizer keeps its rates. With its last scheduler, its base rates are forgotten.
  virtual ~LRScheduler();
  LRScheduler(const LRScheduler&) = delete;
  LRScheduler& operator=(const LRScheduler&) = delete;

  /// Call it after optimizer.step(): once per epoch, or once per batch for schedules that count
  /// batches.
  virtual void step();
  /// The rates that the last step() set, one per parameter group.
  std::vector<double> get_last_lr() const { return last_lr_; }
  /// Number of steps, under Python's name.
  int64_t last_epoch() const { return last_epoch_; }
  /// The optimizer of the constructor.
  torch::optim::Optimizer& optimizer() const { return optimizer_; }

  /// The whole state, including the current rates (and momenta) of the optimizer's groups: loading
  /// it into a new scheduler of a new optimizer restores both, whether before or after the
  /// optimizer's own state. The functions of LambdaLR are not saved.
  virtual SchedulerState state_dict() const;
  /// As in Python, the state's options replace those of the constructor. Throws
  /// std::invalid_argument, without any change, if `state` is of another class of scheduler.
  virtual void load_state_dict(const SchedulerState& state);

 protected:
  /// Takes the groups' rates as base rates, if `optimizer` has no other scheduler. A derived class
  /// then calls initial_step() in its constructor.
  explicit LRScheduler(torch::optim::Optimizer& optimizer);

  /// One rate per parameter group, for last_epoch_. May set momenta.
  virtual std::vector<double> get_lr() = 0;
  /// The rates as a function of last_epoch_ alone, if Python has such a formula. SequentialLR
  /// starts its later schedules with it.
  virtual std::vector<double> closed_form_lr() { return get_lr(); }
  /// Visits common_fields, and all members of the class that change or were options. The default is
  /// for classes of the user: no name and no members.
  virtual void fields(StateFields& fields);
  /// `kind`, the name of the class, and the members of this class.
  void common_fields(StateFields& fields, const char* kind);
  /// The first step of a schedule; the most derived class's constructor and SequentialLR call it.
  virtual void initial_step();
  /// @{
  /// For SequentialLR. undo_initial_step() reverts the counters that initial_step() changed;
  /// begin_late() starts a later schedule at its first step.
  virtual void undo_initial_step() { --last_epoch_; }
  virtual void begin_late();
  /// @}

  /// The rates that the optimizer's groups have now.
  std::vector<double> current_lr() const;
  void set_lr(const std::vector<double>& lr);  ///< sets all groups and last_lr_
  /// The rates that the groups had before any scheduler.
  std::vector<double> initial_lr() const;
  /// Replaces them, as a class does whose options have the base rates.
  void set_initial_lr(const std::vector<double>& lr);
  /// Parameter groups of the optimizer.
  size_t group_count() const { return optimizer_.param_groups().size(); }
  /// f(current rate, base rate) for each group.
  template <class F>
  std::vector<double> each_group(F f) const {
    std::vector<double> rates = current_lr();
    for (size_t i = 0; i < rates.size(); ++i) rates[i] = f(rates[i], base_lrs_.at(i));
    return rates;
  }

  /// The optimizer whose rates this object sets.
  torch::optim::Optimizer& optimizer_;
  /// @{
  /// Base rates and the rates of the last step(), one per group.
  std::vector<double> base_lrs_, last_lr_;
  /// @}
  /// @{
  /// Python's counters of these names: -1 and 0 before initial_step().
  int64_t last_epoch_ = -1, step_count_ = 0;
  /// @}
  bool is_initial_ = false;  ///< within initial_step
  friend class SequentialLR;

 private:
  std::shared_ptr<InitialRates> initial_rates_;  // shared by all schedulers of the optimizer
};

}  // namespace cpprun::optim

#include "cpprun/optim/lr_schedulers.hpp"
