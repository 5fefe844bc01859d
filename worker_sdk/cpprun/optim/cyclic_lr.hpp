/// @file
/// CyclicLR: moves the rate between `base_lr` and `max_lr`, and the momentum in the opposite
/// direction. Call step() once per batch.
///
/// The constructor replaces the optimizer's rates and momenta. One thread. Python counterpart:
/// torch.optim.lr_scheduler.CyclicLR.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "cpprun/optim/lr_scheduler.hpp"

namespace cpprun::optim {

/// The amplitude. Triangular: the same in each cycle. Triangular2: halved in each cycle. ExpRange:
/// gamma ^ step.
enum class CyclicMode { Triangular, Triangular2, ExpRange };
/// The argument of scale_fn: the number of the cycle, from 1, or of the step, from 0.
enum class ScaleMode { Cycle, Iterations };

/// Options of CyclicLR, with Python's names and defaults.
struct CyclicLROptions {
  /// @{
  /// The lowest and the highest rate.
  PerGroup base_lr = 0, max_lr = 0;
  /// @}
  int64_t step_size_up = 2000;                  ///< steps of the rising half of a cycle; > 0
  std::optional<int64_t> step_size_down = {};   ///< default: step_size_up
  CyclicMode mode = CyclicMode::Triangular;     ///< how the amplitude changes from cycle to cycle
  double gamma = 1.0;                           ///< for ExpRange
  std::function<double(double)> scale_fn = {};  ///< the amplitude; replaces `mode`. Not saved
  ScaleMode scale_mode = ScaleMode::Cycle;      ///< for scale_fn
  bool cycle_momentum = true;                   ///< only with SGD, RMSprop, Adam or AdamW
  /// @{
  /// The momentum at the highest rate, and at the lowest.
  PerGroup base_momentum = 0.8, max_momentum = 0.9;
  /// @}
};

/// Moves the rate between `base_lr` and `max_lr` in cycles, and the momentum in the opposite
/// direction; one step per batch. Python counterpart: torch.optim.lr_scheduler.CyclicLR.
class CyclicLR : public LRScheduler {
 public:
  /// Throws std::invalid_argument for options that Python refuses.
  CyclicLR(torch::optim::Optimizer& optimizer, const CyclicLROptions& options);

 protected:
  std::vector<double> get_lr() override;
  void fields(StateFields& fields) override;

 private:
  double amplitude(double cycle) const;

  std::function<double(double)> scale_fn_;
  int64_t mode_;
  bool scales_by_cycle_, cycle_momentum_;
  double gamma_, total_size_, step_ratio_;
  std::vector<double> max_lrs_, base_momentums_, max_momentums_;
};

}  // namespace cpprun::optim
