/// @file
/// OneCycleLR: raises the rate to `max_lr`, then lowers it far below the initial rate, and moves
/// the momentum in the opposite direction. Call step() once per batch.
///
/// The constructor replaces the optimizer's rates and momenta. One thread. Python counterpart:
/// torch.optim.lr_scheduler.OneCycleLR.
#pragma once

#include <cstdint>
#include <vector>

#include "cpprun/optim/lr_scheduler.hpp"

namespace cpprun::optim {

/// The form of a phase: half a cosine, or a straight line.
enum class AnnealStrategy { Cos, Linear };

/// Options of OneCycleLR, with Python's names and defaults.
struct OneCycleLROptions {
  PerGroup max_lr = 0;          ///< the highest rate
  int64_t total_steps = 0;      ///< 0: epochs * steps_per_epoch
  int64_t epochs = 0;           ///< with steps_per_epoch, if total_steps is 0
  int64_t steps_per_epoch = 0;  ///< batches of one epoch
  double pct_start = 0.3;       ///< fraction of the steps that raise the rate
  AnnealStrategy anneal_strategy = AnnealStrategy::Cos;  ///< of all phases
  bool cycle_momentum = true;                            ///< only with SGD, RMSprop, Adam or AdamW
  /// @{
  /// The momentum at the highest rate, and at both ends.
  PerGroup base_momentum = 0.85, max_momentum = 0.95;
  /// @}
  /// @{
  /// The first rate is max_lr / div_factor, the last one is the first / final_div_factor.
  double div_factor = 25, final_div_factor = 1e4;
  /// @}
  /// A third phase lowers the rate from the first one to the last one, and the second phase mirrors
  /// the first one. False: the second phase does both.
  bool three_phase = false;
};

/// Raises the rate to `max_lr`, then lowers it far below the first rate; one step per batch. Python
/// counterpart: torch.optim.lr_scheduler.OneCycleLR.
class OneCycleLR : public LRScheduler {
 public:
  /// Throws std::invalid_argument for options that Python refuses. step() throws it when called
  /// more than total_steps times.
  OneCycleLR(torch::optim::Optimizer& optimizer, const OneCycleLROptions& options);

 protected:
  std::vector<double> get_lr() override;
  void fields(StateFields& fields) override;

 private:
  // Rates and momenta per group at the start and the end of a phase.
  struct Phase {
    double end_step;
    const std::vector<double>*start_lr, *end_lr, *start_momentum, *end_momentum;
  };
  std::vector<Phase> phases() const;
  double anneal(double start, double end, double pct) const;

  int64_t total_steps_ = 0;
  double pct_start_ = 0;
  bool is_cosine_ = true, cycle_momentum_ = true, three_phase_ = false;
  std::vector<double> max_lr_, min_lr_, base_momentum_, max_momentum_;
};

}  // namespace cpprun::optim
