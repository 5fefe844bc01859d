#include "cpprun/optim/one_cycle_lr.hpp"

#include <cmath>
#include <numbers>
#include <stdexcept>

#include "cpprun/optim/momentum.hpp"
#include "cpprun/optim/state_fields.hpp"

namespace cpprun::optim {
namespace {

int64_t steps_of(const OneCycleLROptions& options) {
  const int64_t steps =
      options.total_steps != 0 ? options.total_steps : options.epochs * options.steps_per_epoch;
  if (steps <= 0 || options.total_steps < 0 || options.epochs < 0) {
    throw std::invalid_argument(
        "OneCycleLR needs a positive total_steps, or positive epochs and steps_per_epoch; it got " +
        std::to_string(options.total_steps) + ", " + std::to_string(options.epochs) + " and " +
        std::to_string(options.steps_per_epoch));
  }
  return steps;
}

std::vector<double> divided(std::vector<double> numbers, double divisor) {
  for (double& number : numbers) number /= divisor;
  return numbers;
}

}  // namespace

OneCycleLR::OneCycleLR(torch::optim::Optimizer& optimizer, const OneCycleLROptions& options)
    : LRScheduler(optimizer),
      total_steps_(steps_of(options)),
      pct_start_(options.pct_start),
      is_cosine_(options.anneal_strategy == AnnealStrategy::Cos),
      cycle_momentum_(options.cycle_momentum),
      three_phase_(options.three_phase),
      max_lr_(options.max_lr.expand("max_lr", group_count())) {
  if (!(pct_start_ >= 0 && pct_start_ <= 1)) {
    throw std::invalid_argument("Expected float between 0 and 1 pct_start, but got " +
                                std::to_string(pct_start_));
  }
  const std::vector<double> first = divided(max_lr_, options.div_factor);
  min_lr_ = divided(first, options.final_div_factor);
  if (cycle_momentum_) {
    require_momentum(optimizer);
    max_momentum_ = options.max_momentum.expand("max_momentum", group_count());
    base_momentum_ = options.base_momentum.expand("base_momentum", group_count());
    set_momenta(optimizer_, max_momentum_);
  }
  set_initial_lr(first);
  initial_step();
}

std::vector<OneCycleLR::Phase> OneCycleLR::phases() const {
  const auto total = static_cast<double>(total_steps_);
  const Phase up{pct_start_ * total - 1, &base_lrs_, &max_lr_, &max_momentum_, &base_momentum_};
  const double last = total - 1;
  if (!three_phase_) {
    return {up, {last, &max_lr_, &min_lr_, &base_momentum_, &max_momentum_}};
  }
  const double down = 2 * pct_start_ * total - 2;
  return {up,
          {down, &max_lr_, &base_lrs_, &base_momentum_, &max_momentum_},
          {last, &base_lrs_, &min_lr_, &max_momentum_, &max_momentum_}};
}

double OneCycleLR::anneal(double start, double end, double pct) const {
  if (!is_cosine_) return (end - start) * pct + start;
  const double height = std::cos(std::numbers::pi * pct) + 1;
  return end + (start - end) / 2.0 * height;
}

std::vector<double> OneCycleLR::get_lr() {
  const auto step = static_cast<double>(last_epoch_);
  if (last_epoch_ > total_steps_) {
    throw std::invalid_argument("Tried to step " + std::to_string(last_epoch_) +
                                " times. The specified number of total steps is " +
                                std::to_string(total_steps_));
  }
  const std::vector<Phase> all = phases();
  size_t at = 0;
  while (step > all[at].end_step && at + 1 < all.size()) ++at;
  const double start_step = at == 0 ? 0.0 : all[at - 1].end_step;
  const double length = all[at].end_step - start_step;
  if (length == 0) {
    throw std::domain_error("a phase of OneCycleLR has no steps: with total_steps " +
                            std::to_string(total_steps_) + " choose another pct_start than " +
                            std::to_string(pct_start_));
  }
  const double pct = (step - start_step) / length;
  const auto between = [&](const std::vector<double>& from, const std::vector<double>& to) {
    std::vector<double> values(from.size());
    for (size_t i = 0; i < values.size(); ++i) values[i] = anneal(from[i], to[i], pct);
    return values;
  };
  if (cycle_momentum_)
    set_momenta(optimizer_, between(*all[at].start_momentum, *all[at].end_momentum));
  return between(*all[at].start_lr, *all[at].end_lr);
}

void OneCycleLR::fields(StateFields& fields) {
  common_fields(fields, "OneCycleLR");
  fields("total_steps", total_steps_);
  fields("pct_start", pct_start_);
  fields("cosine", is_cosine_);
  fields("cycle_momentum", cycle_momentum_);
  fields("three_phase", three_phase_);
  fields("max_lr", max_lr_);
  fields("min_lr", min_lr_);
  fields("max_momentum", max_momentum_);
  fields("base_momentum", base_momentum_);
  momentum_field(fields, optimizer_, cycle_momentum_);
}

}  // namespace cpprun::optim
