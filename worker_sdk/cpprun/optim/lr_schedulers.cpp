// The order of operations is Python's, because another one gives other last bits.
#include "cpprun/optim/lr_schedulers.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <stdexcept>

#include "cpprun/optim/state_fields.hpp"

namespace cpprun::optim {
namespace {

constexpr double kPi = std::numbers::pi;

double real(int64_t number) { return static_cast<double>(number); }
double power(double base, int64_t exponent) { return std::pow(base, real(exponent)); }

// Python raises ZeroDivisionError where C++ would train on with infinite rates.
double not_zero(double divisor, const char* what) {
  if (divisor == 0) throw std::domain_error(std::string(what) + " divides by zero");
  return divisor;
}

void require(bool holds, const std::string& text) {
  if (!holds) throw std::invalid_argument(text);
}

void require_one_each(size_t lambdas, size_t groups) {
  require(lambdas == groups,
          "Expected " + std::to_string(groups) + " lr_lambdas, but got " + std::to_string(lambdas));
}

}  // namespace

ConstantLR::ConstantLR(torch::optim::Optimizer& optimizer, ConstantLROptions options)
    : LRScheduler(optimizer), options_(options) {
  require(options.factor >= 0 && options.factor <= 1,
          "ConstantLR's factor is expected to be between 0 and 1, it is " +
              std::to_string(options.factor));
  initial_step();
}

std::vector<double> ConstantLR::get_lr() {
  if (last_epoch_ == 0) {
    return each_group([&](double lr, double) { return lr * options_.factor; });
  }
  if (last_epoch_ != options_.total_iters) return current_lr();
  const double back = 1.0 / not_zero(options_.factor, "ConstantLR's factor 0");
  return each_group([&](double lr, double) { return lr * back; });
}

std::vector<double> ConstantLR::closed_form_lr() {
  const double is_over = last_epoch_ >= options_.total_iters ? 1.0 : 0.0;
  return each_group([&](double, double base) {
    return base * (options_.factor + is_over * (1 - options_.factor));
  });
}

void ConstantLR::fields(StateFields& fields) {
  common_fields(fields, "ConstantLR");
  fields("factor", options_.factor);
  fields("total_iters", options_.total_iters);
}

LinearLR::LinearLR(torch::optim::Optimizer& optimizer, LinearLROptions options)
    : LRScheduler(optimizer), options_(options) {
  require(options.start_factor > 0 && options.start_factor <= 1,
          "LinearLR's start_factor is expected to be greater than 0 and at most 1, it is " +
              std::to_string(options.start_factor));
  require(options.end_factor >= 0 && options.end_factor <= 1,
          "LinearLR's end_factor is expected to be between 0 and 1, it is " +
              std::to_string(options.end_factor));
  initial_step();
}

std::vector<double> LinearLR::get_lr() {
  const auto& [start, end, total] = options_;
  if (last_epoch_ == 0)
    return each_group([&](double lr, double) { return lr * options_.start_factor; });
  if (is_initial_ || last_epoch_ > total) return current_lr();
  const double slope = end - start;
  const double sum = real(total) * start + real(last_epoch_ - 1) * slope;
  const double factor = 1.0 + slope / not_zero(sum, "LinearLR");
  return each_group([&](double lr, double) { return lr * factor; });
}

std::vector<double> LinearLR::closed_form_lr() {
  const auto& [start, end, total] = options_;
  const double done = real(std::min(total, last_epoch_));
  const double all = not_zero(real(total), "LinearLR's total_iters 0");
  const double factor = start + (end - start) * done / all;
  return each_group([&](double, double base) { return base * factor; });
}

void LinearLR::fields(StateFields& fields) {
  common_fields(fields, "LinearLR");
  fields("start_factor", options_.start_factor);
  fields("end_factor", options_.end_factor);
  fields("total_iters", options_.total_iters);
}

StepLR::StepLR(torch::optim::Optimizer& optimizer, StepLROptions options)
    : LRScheduler(optimizer), options_(options) {
  require(options.step_size != 0, "StepLR's step_size must not be 0");
  initial_step();
}

std::vector<double> StepLR::get_lr() {
  if (last_epoch_ == 0 || last_epoch_ % options_.step_size != 0) return current_lr();
  return each_group([&](double lr, double) { return lr * options_.gamma; });
}

std::vector<double> StepLR::closed_form_lr() {
  const double factor = power(options_.gamma, last_epoch_ / options_.step_size);
  return each_group([&](double, double base) { return base * factor; });
}

void StepLR::fields(StateFields& fields) {
  common_fields(fields, "StepLR");
  fields("step_size", options_.step_size);
  fields("gamma", options_.gamma);
}

MultiStepLR::MultiStepLR(torch::optim::Optimizer& optimizer, MultiStepLROptions options)
    : LRScheduler(optimizer), options_(std::move(options)) {
  std::sort(options_.milestones.begin(), options_.milestones.end());
  initial_step();
}

std::vector<double> MultiStepLR::get_lr() {
  const auto& all = options_.milestones;
  const int64_t times = std::count(all.begin(), all.end(), last_epoch_);
  if (times == 0) return current_lr();
  const double factor = power(options_.gamma, times);
  return each_group([&](double lr, double) { return lr * factor; });
}

std::vector<double> MultiStepLR::closed_form_lr() {
  const auto& all = options_.milestones;
  const auto passed = std::upper_bound(all.begin(), all.end(), last_epoch_) - all.begin();
  const double factor = power(options_.gamma, passed);
  return each_group([&](double, double base) { return base * factor; });
}

void MultiStepLR::fields(StateFields& fields) {
  common_fields(fields, "MultiStepLR");
  fields("milestones", options_.milestones);
  fields("gamma", options_.gamma);
}

ExponentialLR::ExponentialLR(torch::optim::Optimizer& optimizer, ExponentialLROptions options)
    : LRScheduler(optimizer), options_(options) {
  initial_step();
}

std::vector<double> ExponentialLR::get_lr() {
  if (is_initial_) return current_lr();
  return each_group([&](double lr, double) { return lr * options_.gamma; });
}

std::vector<double> ExponentialLR::closed_form_lr() {
  const double factor = power(options_.gamma, last_epoch_);
  return each_group([&](double, double base) { return base * factor; });
}

void ExponentialLR::fields(StateFields& fields) {
  common_fields(fields, "ExponentialLR");
  fields("gamma", options_.gamma);
}

LambdaLR::LambdaLR(torch::optim::Optimizer& optimizer, Lambda lr_lambda)
    : LambdaLR(optimizer,
               std::vector<Lambda>(optimizer.param_groups().size(), std::move(lr_lambda))) {}

LambdaLR::LambdaLR(torch::optim::Optimizer& optimizer, std::vector<Lambda> lr_lambdas)
    : LRScheduler(optimizer), lr_lambdas_(std::move(lr_lambdas)) {
  require_one_each(lr_lambdas_.size(), group_count());
  initial_step();
}

std::vector<double> LambdaLR::get_lr() {
  std::vector<double> rates(base_lrs_);
  for (size_t i = 0; i < rates.size(); ++i) rates[i] *= lr_lambdas_[i](last_epoch_);
  return rates;
}

void LambdaLR::fields(StateFields& fields) { common_fields(fields, "LambdaLR"); }

MultiplicativeLR::MultiplicativeLR(torch::optim::Optimizer& optimizer, Lambda lr_lambda)
    : MultiplicativeLR(
          optimizer, std::vector<Lambda>(optimizer.param_groups().size(), std::move(lr_lambda))) {}

MultiplicativeLR::MultiplicativeLR(torch::optim::Optimizer& optimizer,
                                   std::vector<Lambda> lr_lambdas)
    : LRScheduler(optimizer), lr_lambdas_(std::move(lr_lambdas)) {
  require_one_each(lr_lambdas_.size(), group_count());
  initial_step();
}

std::vector<double> MultiplicativeLR::get_lr() {
  std::vector<double> rates = current_lr();
  if (is_initial_) return rates;
  for (size_t i = 0; i < rates.size(); ++i) rates[i] *= lr_lambdas_[i](last_epoch_);
  return rates;
}

void MultiplicativeLR::fields(StateFields& fields) { common_fields(fields, "MultiplicativeLR"); }

PolynomialLR::PolynomialLR(torch::optim::Optimizer& optimizer, PolynomialLROptions options)
    : LRScheduler(optimizer), options_(options) {
  initial_step();
}

std::vector<double> PolynomialLR::get_lr() {
  const auto& [total, exponent] = options_;
  if (is_initial_ || last_epoch_ > total) return current_lr();
  const double left = 1.0 - real(last_epoch_) / real(total);
  const double left_before = 1.0 - real(last_epoch_ - 1) / real(total);
  const double factor = std::pow(left / not_zero(left_before, "PolynomialLR"), exponent);
  return each_group([&](double lr, double) { return lr * factor; });
}

std::vector<double> PolynomialLR::closed_form_lr() {
  const auto& [total, exponent] = options_;
  const double done = real(std::min(total, last_epoch_));
  const double all = not_zero(real(total), "PolynomialLR's total_iters 0");
  const double factor = std::pow(1.0 - done / all, exponent);
  return each_group([&](double, double base) { return base * factor; });
}

void PolynomialLR::fields(StateFields& fields) {
  common_fields(fields, "PolynomialLR");
  fields("total_iters", options_.total_iters);
  fields("power", options_.power);
}

CosineAnnealingLR::CosineAnnealingLR(torch::optim::Optimizer& optimizer,
                                     CosineAnnealingLROptions options)
    : LRScheduler(optimizer), options_(options) {
  require(options.T_max != 0, "CosineAnnealingLR's T_max must not be 0");
  initial_step();
}

std::vector<double> CosineAnnealingLR::get_lr() {
  if (is_initial_) return current_lr();
  const auto& [T_max, eta_min] = options_;
  const double period = real(T_max), lowest = eta_min;
  if ((last_epoch_ - 1 - T_max) % (2 * T_max) == 0) {
    // Just past the lowest point, where the quotient below would be 0 / 0.
    const double rise = 1 - std::cos(kPi / period);
    return each_group([&](double lr, double base) { return lr + (base - lowest) * rise / 2; });
  }
  const double quotient = (1 + std::cos(kPi * real(last_epoch_) / period)) /
                          (1 + std::cos(kPi * real(last_epoch_ - 1) / period));
  return each_group([&](double lr, double) { return quotient * (lr - lowest) + lowest; });
}

std::vector<double> CosineAnnealingLR::closed_form_lr() {
  const double height = 1 + std::cos(kPi * real(last_epoch_) / real(options_.T_max));
  return each_group([&](double, double base) {
    return options_.eta_min + (base - options_.eta_min) * height / 2;
  });
}

void CosineAnnealingLR::fields(StateFields& fields) {
  common_fields(fields, "CosineAnnealingLR");
  fields("T_max", options_.T_max);
  fields("eta_min", options_.eta_min);
}

CosineAnnealingWarmRestarts::CosineAnnealingWarmRestarts(torch::optim::Optimizer& optimizer,
                                                         CosineAnnealingWarmRestartsOptions options)
    : LRScheduler(optimizer), options_(options), T_i_(real(options.T_0)) {
  require(options.T_0 > 0, "Expected positive integer T_0, but got " + std::to_string(options.T_0));
  require(options.T_mult >= 1,
          "Expected integer T_mult >= 1, but got " + std::to_string(options.T_mult));
  initial_step();
}

std::vector<double> CosineAnnealingWarmRestarts::get_lr() {
  const double height = 1 + std::cos(kPi * T_cur_ / T_i_);
  return each_group([&](double, double base) {
    return options_.eta_min + (base - options_.eta_min) * height / 2;
  });
}

void CosineAnnealingWarmRestarts::step() {
  if (last_epoch_ < 0) return step(0.0);
  T_cur_ += 1;
  if (T_cur_ >= T_i_) {
    T_cur_ = std::fmod(T_cur_, T_i_);
    T_i_ *= real(options_.T_mult);
  }
  ++last_epoch_;
  set_lr(get_lr());
}

void CosineAnnealingWarmRestarts::step(double epoch) {
  require(epoch >= 0, "Expected non-negative epoch, but got " + std::to_string(epoch));
  const double first = real(options_.T_0), times = real(options_.T_mult);
  if (epoch < first) {
    T_i_ = first;
    T_cur_ = epoch;
  } else if (options_.T_mult == 1) {
    T_cur_ = std::fmod(epoch, first);
  } else {
    const double restarts = std::trunc(std::log(epoch / first * (times - 1) + 1) / std::log(times));
    T_cur_ = epoch - first * (std::pow(times, restarts) - 1) / (times - 1);
    T_i_ = first * std::pow(times, restarts);
  }
  last_epoch_ = static_cast<int64_t>(std::floor(epoch));
  set_lr(get_lr());
}

void CosineAnnealingWarmRestarts::fields(StateFields& fields) {
  common_fields(fields, "CosineAnnealingWarmRestarts");
  fields("T_0", options_.T_0);
  fields("T_i", T_i_);
  fields("T_mult", options_.T_mult);
  fields("eta_min", options_.eta_min);
  fields("T_cur", T_cur_);
}

}  // namespace cpprun::optim
