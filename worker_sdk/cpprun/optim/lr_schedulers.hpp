// The learning rate schedulers, with Python's option names and defaults. Those that are a formula
// stand here; one_cycle_lr.hpp, reduce_lr_on_plateau.hpp and sequential_lr.hpp have the others.
//
// Constructors set the optimizer's rates, as Python's do; they throw std::invalid_argument for
// options that Python refuses.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "cpprun/optim/lr_scheduler.hpp"

namespace cpprun::optim {

struct ConstantLROptions {
  double factor = 1.0 / 3;
  int64_t total_iters = 5;
};
// The rate times `factor` until step `total_iters`.
class ConstantLR : public LRScheduler {
 public:
  explicit ConstantLR(torch::optim::Optimizer& optimizer, ConstantLROptions options = {});

 protected:
  std::vector<double> get_lr() override;
  std::vector<double> closed_form_lr() override;
  void fields(StateFields& fields) override;

 private:
  ConstantLROptions options_;
};

struct LinearLROptions {
  double start_factor = 1.0 / 3;
  double end_factor = 1.0;
  int64_t total_iters = 5;
};
// From the rate times `start_factor` to the rate times `end_factor` in `total_iters` steps.
class LinearLR : public LRScheduler {
 public:
  explicit LinearLR(torch::optim::Optimizer& optimizer, LinearLROptions options = {});

 protected:
  std::vector<double> get_lr() override;
  std::vector<double> closed_form_lr() override;
  void fields(StateFields& fields) override;

 private:
  LinearLROptions options_;
};

struct StepLROptions {
  int64_t step_size = 1;
  double gamma = 0.1;
};
// The rate times `gamma` every `step_size` steps.
class StepLR : public LRScheduler {
 public:
  StepLR(torch::optim::Optimizer& optimizer, StepLROptions options);

 protected:
  std::vector<double> get_lr() override;
  std::vector<double> closed_form_lr() override;
  void fields(StateFields& fields) override;

 private:
  StepLROptions options_;
};

struct MultiStepLROptions {
  std::vector<int64_t> milestones = {};
  double gamma = 0.1;
};
// The rate times `gamma` at each milestone; as often as it stands in the list.
class MultiStepLR : public LRScheduler {
 public:
  MultiStepLR(torch::optim::Optimizer& optimizer, MultiStepLROptions options);

 protected:
  std::vector<double> get_lr() override;
  std::vector<double> closed_form_lr() override;
  void fields(StateFields& fields) override;

 private:
  MultiStepLROptions options_;
};

struct ExponentialLROptions {
  double gamma = 0.9;
};
// The rate times `gamma` every step.
class ExponentialLR : public LRScheduler {
 public:
  ExponentialLR(torch::optim::Optimizer& optimizer, ExponentialLROptions options);

 protected:
  std::vector<double> get_lr() override;
  std::vector<double> closed_form_lr() override;
  void fields(StateFields& fields) override;

 private:
  ExponentialLROptions options_;
};

struct CosineAnnealingLROptions {
  int64_t T_max = 1;
  double eta_min = 0;
};
// Along a half cosine down to `eta_min` in `T_max` steps, and up again.
class CosineAnnealingLR : public LRScheduler {
 public:
  CosineAnnealingLR(torch::optim::Optimizer& optimizer, CosineAnnealingLROptions options);

 protected:
  std::vector<double> get_lr() override;
  std::vector<double> closed_form_lr() override;
  void fields(StateFields& fields) override;

 private:
  CosineAnnealingLROptions options_;
};

struct CosineAnnealingWarmRestartsOptions {
  int64_t T_0 = 1;
  int64_t T_mult = 1;
  double eta_min = 0;
};
// Half cosines of T_0, T_0 * T_mult, T_0 * T_mult^2, ... steps, each from the full rate.
class CosineAnnealingWarmRestarts : public LRScheduler {
 public:
  CosineAnnealingWarmRestarts(torch::optim::Optimizer& optimizer,
                              CosineAnnealingWarmRestartsOptions options);

  void step() override;
  // To a place between steps: `epoch + batch / batches`. Not negative.
  void step(double epoch);

 protected:
  std::vector<double> get_lr() override;
  void fields(StateFields& fields) override;

 private:
  CosineAnnealingWarmRestartsOptions options_;
  double T_cur_ = -1;  // steps since the last restart
  double T_i_ = 1;     // steps between the last restart and the next
};

// The first rate times a function of the step. A state does not hold the functions.
class LambdaLR : public LRScheduler {
 public:
  using Lambda = std::function<double(int64_t step)>;
  LambdaLR(torch::optim::Optimizer& optimizer, Lambda lr_lambda);
  LambdaLR(torch::optim::Optimizer& optimizer, std::vector<Lambda> lr_lambdas);  // one per group

 protected:
  std::vector<double> get_lr() override;
  void fields(StateFields& fields) override;

 private:
  std::vector<Lambda> lr_lambdas_;
};

}  // namespace cpprun::optim

#include "cpprun/optim/one_cycle_lr.hpp"
#include "cpprun/optim/reduce_lr_on_plateau.hpp"
#include "cpprun/optim/sequential_lr.hpp"
