// SequentialLR: one schedule after another, from milestone to milestone.
//
//   optim::SequentialLR schedule(
//       optimizer, {std::make_shared<optim::LinearLR>(optimizer),
//                   std::make_shared<optim::ExponentialLR>(optimizer, ...)}, {20});
//
// Python counterpart: torch.optim.lr_scheduler.SequentialLR. One thread.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "cpprun/optim/lr_scheduler.hpp"

namespace cpprun::optim {

class SequentialLR : public LRScheduler {
 public:
  // Schedule i + 1 begins at step milestones[i]. All must be of `optimizer`, none a
  // ReduceLROnPlateau; another SequentialLR only as the first. Else std::invalid_argument. Owners
  // are shared: a caller may keep a schedule to look at.
  SequentialLR(torch::optim::Optimizer& optimizer,
               std::vector<std::shared_ptr<LRScheduler>> schedulers,
               std::vector<int64_t> milestones);

  void step() override;
  // Its own numbers, and those of schedule i as "_schedulers.i.<name>".
  SchedulerState state_dict() const override;
  void load_state_dict(const SchedulerState& state) override;

 protected:
  std::vector<double> get_lr() override;  // throws std::logic_error: there is no one formula
  void undo_initial_step() override;

 private:
  std::vector<std::shared_ptr<LRScheduler>> schedulers_;
  std::vector<int64_t> milestones_;
};

}  // namespace cpprun::optim
