// CosineAnnealingLR and CosineAnnealingWarmRestarts. The order of operations is Python's, because
// another one gives other last bits.
#include <cmath>
#include <numbers>
#include <stdexcept>

#include "cpprun/optim/lr_schedulers.hpp"
#include "cpprun/optim/state_fields.hpp"

namespace cpprun::optim {
namespace {

constexpr double kPi = std::numbers::pi;

double real(int64_t number) { return static_cast<double>(number); }

}  // namespace

CosineAnnealingLR::CosineAnnealingLR(torch::optim::Optimizer& optimizer,
                                     CosineAnnealingLROptions options)
    : LRScheduler(optimizer), options_(options) {
  if (options.T_max == 0) throw std::invalid_argument("CosineAnnealingLR's T_max must not be 0");
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
  fields.kind("CosineAnnealingLR");
  LRScheduler::fields(fields);
  fields("T_max", options_.T_max);
  fields("eta_min", options_.eta_min);
}

CosineAnnealingWarmRestarts::CosineAnnealingWarmRestarts(torch::optim::Optimizer& optimizer,
                                                         CosineAnnealingWarmRestartsOptions options)
    : LRScheduler(optimizer), options_(options), T_i_(real(options.T_0)) {
  if (options.T_0 <= 0) {
    throw std::invalid_argument("Expected positive integer T_0, but got " +
                                std::to_string(options.T_0));
  }
  if (options.T_mult < 1) {
    throw std::invalid_argument("Expected integer T_mult >= 1, but got " +
                                std::to_string(options.T_mult));
  }
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
  if (!(epoch >= 0)) {
    throw std::invalid_argument("Expected non-negative epoch, but got " + std::to_string(epoch));
  }
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
  fields.kind("CosineAnnealingWarmRestarts");
  LRScheduler::fields(fields);
  fields("T_0", options_.T_0);
  fields("T_i", T_i_);
  fields("T_mult", options_.T_mult);
  fields("eta_min", options_.eta_min);
  fields("T_cur", T_cur_);
}

}  // namespace cpprun::optim
