/// @file
/// ReduceLROnPlateau: reduces the rate when a metric (a validation loss) stops improving.
///
/// All ranks must pass the same metric, else their rates differ. One thread. Python counterpart:
/// torch.optim.lr_scheduler.ReduceLROnPlateau.
#pragma once

#include <cstdint>
#include <vector>

#include "cpprun/optim/lr_scheduler.hpp"

namespace cpprun::optim {

/// Whether the metric should fall or grow.
enum class PlateauMode { Min, Max };
/// Whether the threshold is relative to the best metric, or absolute.
enum class ThresholdMode { Rel, Abs };

/// Options of ReduceLROnPlateau, with Python's names and defaults.
struct ReduceLROnPlateauOptions {
  PlateauMode mode = PlateauMode::Min;  ///< Min: a smaller metric is better
  double factor = 0.1;                  ///< of each reduction; below 1
  int64_t patience = 10;                ///< steps without improvement that are accepted
  double threshold = 1e-4;              ///< the least improvement that counts
  ThresholdMode threshold_mode = ThresholdMode::Rel;  ///< how `threshold` is meant
  int64_t cooldown = 0;                               ///< steps after a reduction that do not count
  PerGroup min_lr = 0;                                ///< the lowest rate
  double eps = 1e-8;                                  ///< a smaller reduction is not made
};

/// Reduces the rate when a metric stops improving. Python counterpart:
/// torch.optim.lr_scheduler.ReduceLROnPlateau.
class ReduceLROnPlateau : public LRScheduler {
 public:
  /// Leaves the optimizer's rates as they are. Throws std::invalid_argument for a factor of 1 or
  /// more.
  explicit ReduceLROnPlateau(torch::optim::Optimizer& optimizer,
                             const ReduceLROnPlateauOptions& options = {});

  /// Call it once per epoch, after validation, with the same `metrics` on all ranks. NaN is no
  /// improvement.
  void step(double metrics);
  void step() override;  ///< throws std::logic_error: the metric is missing

 protected:
  std::vector<double> get_lr() override;
  void fields(StateFields& fields) override;

 private:
  bool is_better(double metrics) const;

  ReduceLROnPlateauOptions options_;
  std::vector<double> min_lrs_;
  double best_ = 0;
  int64_t num_bad_epochs_ = 0, cooldown_counter_ = 0;
};

}  // namespace cpprun::optim
