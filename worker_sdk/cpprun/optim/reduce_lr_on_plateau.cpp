#include "cpprun/optim/reduce_lr_on_plateau.hpp"

#include <algorithm>
#include <limits>
#include <stdexcept>

#include "cpprun/optim/state_fields.hpp"

namespace cpprun::optim {

ReduceLROnPlateau::ReduceLROnPlateau(torch::optim::Optimizer& optimizer,
                                     const ReduceLROnPlateauOptions& options)
    : LRScheduler(optimizer),
      options_(options),
      min_lrs_(options.min_lr.expand("min_lr", group_count())) {
  if (options.factor >= 1.0) {
    throw std::invalid_argument("ReduceLROnPlateau's factor should be < 1.0, it is " +
                                std::to_string(options.factor));
  }
  const double worst = std::numeric_limits<double>::infinity();
  best_ = options.mode == PlateauMode::Max ? -worst : worst;
  last_epoch_ = 0;
  last_lr_ = current_lr();
}

void ReduceLROnPlateau::step() {
  throw std::logic_error("ReduceLROnPlateau needs the number to watch: step(validation_loss)");
}

void ReduceLROnPlateau::step(double metrics) {
  ++last_epoch_;
  if (is_better(metrics)) {
    best_ = metrics;
    num_bad_epochs_ = 0;
  } else {
    ++num_bad_epochs_;
  }
  if (cooldown_counter_ > 0) {
    --cooldown_counter_;
    num_bad_epochs_ = 0;
  }
  if (num_bad_epochs_ > options_.patience) {
    set_lr(get_lr());
    cooldown_counter_ = options_.cooldown;
    num_bad_epochs_ = 0;
  }
  last_lr_ = current_lr();
}

std::vector<double> ReduceLROnPlateau::get_lr() {
  std::vector<double> rates = current_lr();
  for (size_t i = 0; i < rates.size(); ++i) {
    const double smaller = std::max(rates[i] * options_.factor, min_lrs_.at(i));
    if (rates[i] - smaller > options_.eps) rates[i] = smaller;
  }
  return rates;
}

// The comparisons have the direction of Python's, so that NaN is never better.
bool ReduceLROnPlateau::is_better(double metrics) const {
  const bool is_max = options_.mode == PlateauMode::Max;
  if (options_.threshold_mode == ThresholdMode::Abs) {
    return is_max ? metrics > best_ + options_.threshold : metrics < best_ - options_.threshold;
  }
  return is_max ? metrics > best_ * (options_.threshold + 1.0)
                : metrics < best_ * (1.0 - options_.threshold);
}

void ReduceLROnPlateau::fields(StateFields& fields) {
  common_fields(fields, "ReduceLROnPlateau");
  bool is_max = options_.mode == PlateauMode::Max;
  bool is_absolute = options_.threshold_mode == ThresholdMode::Abs;
  fields("is_max", is_max);
  fields("factor", options_.factor);
  fields("patience", options_.patience);
  fields("threshold", options_.threshold);
  fields("is_absolute", is_absolute);
  fields("cooldown", options_.cooldown);
  fields("eps", options_.eps);
  fields("min_lrs", min_lrs_);
  fields("best", best_);
  fields("num_bad_epochs", num_bad_epochs_);
  fields("cooldown_counter", cooldown_counter_);
  options_.mode = is_max ? PlateauMode::Max : PlateauMode::Min;
  options_.threshold_mode = is_absolute ? ThresholdMode::Abs : ThresholdMode::Rel;
}

}  // namespace cpprun::optim
