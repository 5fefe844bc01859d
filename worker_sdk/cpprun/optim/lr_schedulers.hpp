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

/// Options of ConstantLR, with Python's names and defaults.
struct ConstantLROptions {
  double factor = 1.0 / 3;  ///< 0 to 1
  int64_t total_iters = 5;  ///< steps with the factor
};
/// Base rate x `factor` until step `total_iters`, then the base rate.
class ConstantLR : public LRScheduler {
 public:
  /// Multiplies the optimizer's rates by `factor`. Throws std::invalid_argument for a factor
  /// outside 0 to 1.
  explicit ConstantLR(torch::optim::Optimizer& optimizer, ConstantLROptions options = {});

 protected:
  std::vector<double> get_lr() override;
  std::vector<double> closed_form_lr() override;
  void fields(StateFields& fields) override;

 private:
  ConstantLROptions options_;
};

/// Options of LinearLR, with Python's names and defaults.
struct LinearLROptions {
  double start_factor = 1.0 / 3;  ///< above 0, at most 1
  double end_factor = 1.0;        ///< 0 to 1
  int64_t total_iters = 5;        ///< steps from one factor to the other
};
/// Linear from base rate x `start_factor` to base rate x `end_factor` in `total_iters` steps.
class LinearLR : public LRScheduler {
 public:
  /// Multiplies the optimizer's rates by `start_factor`. Throws std::invalid_argument for factors
  /// out of range.
  explicit LinearLR(torch::optim::Optimizer& optimizer, LinearLROptions options = {});

 protected:
  std::vector<double> get_lr() override;
  std::vector<double> closed_form_lr() override;
  void fields(StateFields& fields) override;

 private:
  LinearLROptions options_;
};

/// Options of StepLR, with Python's names.
struct StepLROptions {
  int64_t step_size = 1;  ///< steps between two decays; not 0
  double gamma = 0.1;     ///< factor of each decay
};
/// Multiplies the rate by `gamma` every `step_size` steps.
class StepLR : public LRScheduler {
 public:
  /// Leaves the optimizer's rates as they are. Throws std::invalid_argument if step_size is 0.
  StepLR(torch::optim::Optimizer& optimizer, StepLROptions options);

 protected:
  std::vector<double> get_lr() override;
  std::vector<double> closed_form_lr() override;
  void fields(StateFields& fields) override;

 private:
  StepLROptions options_;
};

/// Options of MultiStepLR, with Python's names.
struct MultiStepLROptions {
  std::vector<int64_t> milestones = {};  ///< steps, in any order
  double gamma = 0.1;                    ///< factor at each milestone
};
/// Multiplies the rate by `gamma` at each milestone (a step), once for each time it is in the list.
class MultiStepLR : public LRScheduler {
 public:
  /// Leaves the optimizer's rates as they are.
  MultiStepLR(torch::optim::Optimizer& optimizer, MultiStepLROptions options);

 protected:
  std::vector<double> get_lr() override;
  std::vector<double> closed_form_lr() override;
  void fields(StateFields& fields) override;

 private:
  MultiStepLROptions options_;
};

/// Options of ExponentialLR.
struct ExponentialLROptions {
  double gamma = 0.9;  ///< factor of each step; Python has no default
};
/// Multiplies the rate by `gamma` every step.
class ExponentialLR : public LRScheduler {
 public:
  /// Leaves the optimizer's rates as they are.
  ExponentialLR(torch::optim::Optimizer& optimizer, ExponentialLROptions options);

 protected:
  std::vector<double> get_lr() override;
  std::vector<double> closed_form_lr() override;
  void fields(StateFields& fields) override;

 private:
  ExponentialLROptions options_;
};

/// Options of CosineAnnealingLR, with Python's names.
struct CosineAnnealingLROptions {
  int64_t T_max = 1;   ///< steps of half a cosine; not 0
  double eta_min = 0;  ///< the lowest rate
};
/// A half cosine from the base rate to `eta_min` in `T_max` steps, and back.
class CosineAnnealingLR : public LRScheduler {
 public:
  /// Leaves the optimizer's rates as they are. Throws std::invalid_argument if T_max is 0.
  CosineAnnealingLR(torch::optim::Optimizer& optimizer, CosineAnnealingLROptions options);

 protected:
  std::vector<double> get_lr() override;
  std::vector<double> closed_form_lr() override;
  void fields(StateFields& fields) override;

 private:
  CosineAnnealingLROptions options_;
};

/// Options of CosineAnnealingWarmRestarts, with Python's names.
struct CosineAnnealingWarmRestartsOptions {
  int64_t T_0 = 1;     ///< steps before the first restart; at least 1
  int64_t T_mult = 1;  ///< factor between the lengths of two periods; at least 1
  double eta_min = 0;  ///< the lowest rate
};
/// Half cosines of T_0, T_0 * T_mult, T_0 * T_mult^2, ... steps, each starting at the base rate.
class CosineAnnealingWarmRestarts : public LRScheduler {
 public:
  /// Sets the optimizer's rates to the base rates. Throws std::invalid_argument for T_0 or T_mult
  /// below 1.
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
  /// The factor of the base rate at `step`, from 0.
  using Lambda = std::function<double(int64_t step)>;
  /// The same function for all groups. The constructor sets the rates for step 0.
  LambdaLR(torch::optim::Optimizer& optimizer, Lambda lr_lambda);
  /// One function per parameter group. Throws std::invalid_argument for another number of
  /// functions.
  LambdaLR(torch::optim::Optimizer& optimizer, std::vector<Lambda> lr_lambdas);

 protected:
  std::vector<double> get_lr() override;
  void fields(StateFields& fields) override;

 private:
  std::vector<Lambda> lr_lambdas_;
};

/// Multiplies the rate by a function of the step. state_dict() does not save the functions.
class MultiplicativeLR : public LRScheduler {
 public:
  /// The factor between the rate before `step` and that of `step`; called from step 1 on.
  using Lambda = std::function<double(int64_t step)>;
  /// The same function for all groups. Leaves the optimizer's rates as they are.
  MultiplicativeLR(torch::optim::Optimizer& optimizer, Lambda lr_lambda);
  /// One function per parameter group. Throws std::invalid_argument for another number of
  /// functions.
  MultiplicativeLR(torch::optim::Optimizer& optimizer, std::vector<Lambda> lr_lambdas);

 protected:
  std::vector<double> get_lr() override;
  void fields(StateFields& fields) override;

 private:
  std::vector<Lambda> lr_lambdas_;
};

/// Options of PolynomialLR, with Python's names and defaults.
struct PolynomialLROptions {
  int64_t total_iters = 5;  ///< steps until the rate is 0
  double power = 1.0;       ///< 1: linear
};
/// Base rate x (1 - step / `total_iters`) ^ `power`, then 0.
class PolynomialLR : public LRScheduler {
 public:
  /// Leaves the optimizer's rates as they are.
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
