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

struct ReduceLROnPlateauOptions {
  PlateauMode mode = PlateauMode::Min;
  double factor = 0.1;
  int64_t patience = 10;
  double threshold = 1e-4;
  ThresholdMode threshold_mode = ThresholdMode::Rel;
  int64_t cooldown = 0;
  PerGroup min_lr = 0;
  double eps = 1e-8;
};

class ReduceLROnPlateau : public LRScheduler {
 public:
  explicit ReduceLROnPlateau(torch::optim::Optimizer& optimizer,
                             const ReduceLROnPlateauOptions& options = {});

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
