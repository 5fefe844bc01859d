/// @file
/// SequentialLR: several schedules, one after another.
///
///     optim::SequentialLR schedule(
///         optimizer, {std::make_shared<optim::LinearLR>(optimizer),
///                     std::make_shared<optim::ExponentialLR>(optimizer, ...)}, {20});
///
/// Python counterpart: torch.optim.lr_scheduler.SequentialLR. One thread.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "cpprun/optim/lr_scheduler.hpp"

namespace cpprun::optim {

/// Several schedules, one after another. Python counterpart: torch.optim.lr_scheduler.SequentialLR.
class SequentialLR : public LRScheduler {
 public:
  /// Schedule i + 1 begins at step milestones[i]. All schedulers must use `optimizer`; none may be
  /// a ReduceLROnPlateau, and only the first may be another SequentialLR; else
  /// std::invalid_argument.
  SequentialLR(torch::optim::Optimizer& optimizer,
               std::vector<std::shared_ptr<LRScheduler>> schedulers,
               std::vector<int64_t> milestones);

  void step() override;
  /// Its own numbers, and those of scheduler i as "_schedulers.i.<name>".
  SchedulerState state_dict() const override;
  void load_state_dict(const SchedulerState& state) override;

 protected:
  std::vector<double> get_lr() override;      ///< throws std::logic_error: never called
  void fields(StateFields& fields) override;  ///< without those of the inner schedulers
  void undo_initial_step() override;

 private:
  std::vector<std::shared_ptr<LRScheduler>> schedulers_;
  std::vector<int64_t> milestones_;
};

}  // namespace cpprun::optim
