// The order of operations is Python's, because another one gives other last bits.
#include "cpprun/optim/cyclic_lr.hpp"

#include <cmath>
#include <stdexcept>

#include "cpprun/optim/momentum.hpp"
#include "cpprun/optim/state_fields.hpp"

namespace cpprun::optim {
namespace {

// Before the base class takes the rates that the groups have as its base rates.
torch::optim::Optimizer& with_base_lrs(torch::optim::Optimizer& optimizer,
                                       const std::vector<double>& rates) {
  for (size_t i = 0; i < rates.size(); ++i) optimizer.param_groups()[i].options().set_lr(rates[i]);
  return optimizer;
}

double total_size_of(const CyclicLROptions& options) {
  const int64_t down = options.step_size_down.value_or(options.step_size_up);
  if (options.step_size_up <= 0 || down < 0) {
    throw std::invalid_argument(
        "CyclicLR needs a positive step_size_up and no negative "
        "step_size_down; it got " +
        std::to_string(options.step_size_up) + " and " + std::to_string(down));
  }
  return static_cast<double>(options.step_size_up) + static_cast<double>(down);
}

bool scales_by_cycle(const CyclicLROptions& options) {
  if (options.scale_fn) return options.scale_mode == ScaleMode::Cycle;
  return options.mode != CyclicMode::ExpRange;
}

}  // namespace

CyclicLR::CyclicLR(torch::optim::Optimizer& optimizer, const CyclicLROptions& options)
    : LRScheduler(with_base_lrs(
          optimizer, options.base_lr.expand("base_lr", optimizer.param_groups().size()))),
      scale_fn_(options.scale_fn),
      mode_(static_cast<int64_t>(options.mode)),
      scales_by_cycle_(scales_by_cycle(options)),
      cycle_momentum_(options.cycle_momentum),
      gamma_(options.gamma),
      total_size_(total_size_of(options)),
      step_ratio_(static_cast<double>(options.step_size_up) / total_size_),
      max_lrs_(options.max_lr.expand("max_lr", group_count())) {
  if (cycle_momentum_) {
    require_momentum(optimizer);
    base_momentums_ = options.base_momentum.expand("base_momentum", group_count());
    max_momentums_ = options.max_momentum.expand("max_momentum", group_count());
    set_momenta(optimizer_, max_momentums_);
  }
  initial_step();
  base_lrs_ = options.base_lr.expand("base_lr", group_count());
}

double CyclicLR::amplitude(double cycle) const {
  const double at = scales_by_cycle_ ? cycle : static_cast<double>(last_epoch_);
  if (scale_fn_) return scale_fn_(at);
  switch (static_cast<CyclicMode>(mode_)) {
    case CyclicMode::Triangular2: return 1 / std::pow(2.0, at - 1);
    case CyclicMode::ExpRange: return std::pow(gamma_, at);
    case CyclicMode::Triangular: break;
  }
  return 1.0;
}

std::vector<double> CyclicLR::get_lr() {
  const double passed = static_cast<double>(last_epoch_) / total_size_;
  const double cycle = std::floor(1 + passed);
  const double x = 1.0 + passed - cycle;
  const double factor = x <= step_ratio_ ? x / step_ratio_ : (x - 1) / (step_ratio_ - 1);
  const double scale = amplitude(cycle);
  std::vector<double> rates(base_lrs_);
  for (size_t i = 0; i < rates.size(); ++i) {
    const double height = (max_lrs_.at(i) - base_lrs_[i]) * factor;
    rates[i] = base_lrs_[i] + height * scale;
  }
  if (cycle_momentum_) {
    std::vector<double> momenta(max_momentums_);
    for (size_t i = 0; i < momenta.size(); ++i) {
      const double height = (max_momentums_[i] - base_momentums_.at(i)) * factor;
      momenta[i] = max_momentums_[i] - height * scale;
    }
    set_momenta(optimizer_, momenta);
  }
  return rates;
}

void CyclicLR::fields(StateFields& fields) {
  common_fields(fields, "CyclicLR");
  fields("mode", mode_);
  fields("gamma", gamma_);
  fields("scales_by_cycle", scales_by_cycle_);
  fields("total_size", total_size_);
  fields("step_ratio", step_ratio_);
  fields("max_lrs", max_lrs_);
  fields("cycle_momentum", cycle_momentum_);
  fields("base_momentums", base_momentums_);
  fields("max_momentums", max_momentums_);
  momentum_field(fields, optimizer_, cycle_momentum_);
}

}  // namespace cpprun::optim
