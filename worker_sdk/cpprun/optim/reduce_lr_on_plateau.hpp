// ReduceLROnPlateau: a smaller rate when a number (a validation loss) stops getting better.
//
// Python counterpart: torch.optim.lr_scheduler.ReduceLROnPlateau. All ranks must give the same
// number, or their rates part. One thread.
#pragma once

#include <cstdint>
#include <vector>

#include "cpprun/optim/lr_scheduler.hpp"

namespace cpprun::optim {

struct ReduceLROnPlateauOptions {
  bool is_max = false;  // Python: mode 'max'; the number should grow
  double factor = 0.1;
  int64_t patience = 10;
  double threshold = 1e-4;
  bool is_absolute = false;  // Python: threshold_mode 'abs'
  int64_t cooldown = 0;
  PerGroup min_lr = 0;
  double eps = 1e-8;
};

class ReduceLROnPlateau : public LRScheduler {
 public:
  explicit ReduceLROnPlateau(torch::optim::Optimizer& optimizer,
                             const ReduceLROnPlateauOptions& options = {});

  void step(double metrics);
  void step() override;  // throws std::logic_error: it needs the number

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
