/// @file
/// ChainedScheduler: several schedules at once. Each step() steps all of them, one after another,
/// on the rates that the one before has set.
///
///     optim::ChainedScheduler schedule({std::make_shared<optim::ConstantLR>(optimizer),
///                                       std::make_shared<optim::ExponentialLR>(optimizer, ...)});
///
/// Python counterpart: torch.optim.lr_scheduler.ChainedScheduler. One thread.
#pragma once

#include <memory>
#include <vector>

#include "cpprun/optim/lr_scheduler.hpp"

namespace cpprun::optim {

/// Several schedules at once: each step() steps all of them, one after another. Python counterpart:
/// torch.optim.lr_scheduler.ChainedScheduler.
class ChainedScheduler : public LRScheduler {
 public:
  /// Throws std::invalid_argument unless there is a scheduler, all use one optimizer and none is a
  /// ReduceLROnPlateau.
  explicit ChainedScheduler(std::vector<std::shared_ptr<LRScheduler>> schedulers);

  void step() override;
  /// Its own numbers, and those of scheduler i as "_schedulers.i.<name>".
  SchedulerState state_dict() const override;
  void load_state_dict(const SchedulerState& state) override;

 protected:
  std::vector<double> get_lr() override;      ///< throws std::logic_error: never called
  void fields(StateFields& fields) override;  ///< without those of the inner schedulers

 private:
  std::vector<std::shared_ptr<LRScheduler>> schedulers_;
};

}  // namespace cpprun::optim
