/// @file
/// Learning rate schedulers, with Python's option names and defaults. cyclic_lr.hpp,
/// one_cycle_lr.hpp, reduce_lr_on_plateau.hpp, sequential_lr.hpp and chained_scheduler.hpp have the
/// other ones.
///
/// As in Python, constructors set the optimizer's rates. They throw std::invalid_argument for
/// options that Python refuses. Python counterpart: torch.optim.lr_scheduler.
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
/// Base rate x `factor` until step `total_iters`, then the base rate.
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
/// Linear from base rate x `start_factor` to base rate x `end_factor` in `total_iters` steps.
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
/// Multiplies the rate by `gamma` every `step_size` steps.
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
/// Multiplies the rate by `gamma` at each milestone (a step), once for each time it is in the list.
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
/// Multiplies the rate by `gamma` every step.
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
/// A half cosine from the base rate to `eta_min` in `T_max` steps, and back.
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
/// Half cosines of T_0, T_0 * T_mult, T_0 * T_mult^2, ... steps, each starting at the base rate.
class CosineAnnealingWarmRestarts : public LRScheduler {
 public:
  CosineAnnealingWarmRestarts(torch::optim::Optimizer& optimizer,
                              CosineAnnealingWarmRestartsOptions options);

  void step() override;
  /// Moves to a fractional epoch, `epoch + batch / batches`. Throws std::invalid_argument if
  /// negative.
  void step(double epoch);

 protected:
  std::vector<double> get_lr() override;
  void fields(StateFields& fields) override;

 private:
  CosineAnnealingWarmRestartsOptions options_;
  double T_cur_ = -1;  // steps since the last restart
  double T_i_ = 1;     // steps between the last restart and the next
};

/// Base rate x a function of the step. state_dict() does not save the functions.
class LambdaLR : public LRScheduler {
 public:
  using Lambda = std::function<double(int64_t step)>;
  LambdaLR(torch::optim::Optimizer& optimizer, Lambda lr_lambda);
  LambdaLR(torch::optim::Optimizer& optimizer, std::vector<Lambda> lr_lambdas);  ///< one per group

 protected:
  std::vector<double> get_lr() override;
  void fields(StateFields& fields) override;

 private:
  std::vector<Lambda> lr_lambdas_;
};

/// Multiplies the rate by a function of the step. state_dict() does not save the functions.
class MultiplicativeLR : public LRScheduler {
 public:
  using Lambda = std::function<double(int64_t step)>;
  MultiplicativeLR(torch::optim::Optimizer& optimizer, Lambda lr_lambda);
  MultiplicativeLR(torch::optim::Optimizer& optimizer, std::vector<Lambda> lr_lambdas);

 protected:
  std::vector<double> get_lr() override;
  void fields(StateFields& fields) override;

 private:
  std::vector<Lambda> lr_lambdas_;
};

struct PolynomialLROptions {
  int64_t total_iters = 5;
  double power = 1.0;
};
/// Base rate x (1 - step / `total_iters`) ^ `power`, then 0.
class PolynomialLR : public LRScheduler {
 public:
  explicit PolynomialLR(torch::optim::Optimizer& optimizer, PolynomialLROptions options = {});

 protected:
  std::vector<double> get_lr() override;
  std::vector<double> closed_form_lr() override;
  void fields(StateFields& fields) override;

 private:
  PolynomialLROptions options_;
};

/// Python's name of the module, for the same classes.
namespace lr_scheduler = cpprun::optim;

}  // namespace cpprun::optim

#include "cpprun/optim/chained_scheduler.hpp"
#include "cpprun/optim/cyclic_lr.hpp"
#include "cpprun/optim/one_cycle_lr.hpp"
#include "cpprun/optim/reduce_lr_on_plateau.hpp"
#include "cpprun/optim/sequential_lr.hpp"
