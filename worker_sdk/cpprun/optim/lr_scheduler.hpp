// Learning rate schedulers with state. Python counterpart: torch.optim.lr_scheduler, with its
// names, defaults and, to the last digit, its numbers.
//
//   optim::CosineAnnealingLR schedule(optimizer, {.T_max = 10});
//   for (...) { ...; optimizer.step(); schedule.step(); }
//
// A scheduler keeps a reference to its optimizer, which must outlive it. One thread.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <torch/optim/optimizer.h>

namespace cpprun::optim {

// Numbers by name; what a snapshot keeps of a scheduler. Lists count up: "last_lr.0".
using SchedulerState = std::map<std::string, double>;

class LRScheduler {
 public:
  virtual ~LRScheduler() = default;
  LRScheduler(const LRScheduler&) = delete;
  LRScheduler& operator=(const LRScheduler&) = delete;

  // After optimizer.step(), once per training epoch (or batch).
  void step();
  std::vector<double> get_last_lr() const { return last_lr_; }
  int64_t last_epoch() const { return last_epoch_; }
  virtual SchedulerState state_dict() const;
  // Throws std::invalid_argument if `state` is another scheduler's.
  virtual void load_state_dict(const SchedulerState& state);

 protected:
  explicit LRScheduler(torch::optim::Optimizer& optimizer);
  void first_step();  // of the constructor of the last class
  // One rate per parameter group.
  virtual std::vector<double> get_lr() = 0;
  std::vector<double> current_lr() const;
  void set_lr(const std::vector<double>& lr);

  torch::optim::Optimizer& optimizer_;
  std::vector<double> base_lr_, last_lr_;
  int64_t last_epoch_ = -1;
  friend class SequentialLR;
};

struct ConstantLROptions {
  double factor = 1.0 / 3;
  int64_t total_iters = 5;
};
struct LinearLROptions {
  double start_factor = 1.0 / 3;
  double end_factor = 1.0;
  int64_t total_iters = 5;
};
struct StepLROptions {
  int64_t step_size = 1;
  double gamma = 0.1;
};
struct MultiStepLROptions {
  std::vector<int64_t> milestones;
  double gamma = 0.1;
};
struct ExponentialLROptions {
  double gamma = 0.9;
};
struct CosineAnnealingLROptions {
  int64_t T_max = 1;
  double eta_min = 0;
};
struct CosineAnnealingWarmRestartsOptions {
  int64_t T_0 = 1;
  int64_t T_mult = 1;
  double eta_min = 0;
};
struct OneCycleLROptions {
  double max_lr = 0;
  int64_t total_steps = 0;
  double pct_start = 0.3;
  bool cosine = true;  // anneal_strategy
  bool cycle_momentum = true;
  double base_momentum = 0.85, max_momentum = 0.95;
  double div_factor = 25, final_div_factor = 1e4;
  bool three_phase = false;
};
struct ReduceLROnPlateauOptions {
  bool is_max = false;  // mode
  double factor = 0.1;
  int64_t patience = 10;
  double threshold = 1e-4;
  bool is_absolute = false;  // threshold_mode
  int64_t cooldown = 0;
  double min_lr = 0;
  double eps = 1e-8;
};

// The classes are declared in lr_schedulers.hpp, one per Options struct:
// ConstantLR, LinearLR, StepLR, MultiStepLR, ExponentialLR, CosineAnnealingLR,
// CosineAnnealingWarmRestarts, OneCycleLR, ReduceLROnPlateau, LambdaLR, SequentialLR.

}  // namespace cpprun::optim

#include "cpprun/optim/lr_schedulers.hpp"
