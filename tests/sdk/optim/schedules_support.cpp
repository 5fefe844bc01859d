#include "tests/sdk/optim/schedules_support.hpp"

#include <cstdio>
#include <stdexcept>

#include "cpprun/optim/momentum.hpp"

namespace cpprun::test {
namespace {

using optim::PerGroup;

// Copies the number of that name, if there is one, into an option.
template <class T>
void take(const Json& from, const char* name, T& option) {
  if (from.contains(name)) option = from.at(name).get<T>();
}
void take(const Json& from, const char* name, PerGroup& option) {
  if (!from.contains(name)) return;
  const Json& value = from.at(name);
  option =
      value.is_array() ? PerGroup(value.get<std::vector<double>>()) : PerGroup(value.get<double>());
}

optim::OneCycleLROptions one_cycle(const Json& from) {
  optim::OneCycleLROptions options;
  take(from, "max_lr", options.max_lr);
  take(from, "total_steps", options.total_steps);
  take(from, "epochs", options.epochs);
  take(from, "steps_per_epoch", options.steps_per_epoch);
  take(from, "pct_start", options.pct_start);
  const bool is_cosine = from.value("anneal_strategy", "cos") == "cos";
  options.anneal_strategy = is_cosine ? optim::AnnealStrategy::Cos : optim::AnnealStrategy::Linear;
  take(from, "cycle_momentum", options.cycle_momentum);
  take(from, "base_momentum", options.base_momentum);
  take(from, "max_momentum", options.max_momentum);
  take(from, "div_factor", options.div_factor);
  take(from, "final_div_factor", options.final_div_factor);
  take(from, "three_phase", options.three_phase);
  return options;
}

optim::ReduceLROnPlateauOptions plateau(const Json& from) {
  optim::ReduceLROnPlateauOptions options;
  const bool is_max = from.value("mode", "min") == "max";
  const bool is_absolute = from.value("threshold_mode", "rel") == "abs";
  options.mode = is_max ? optim::PlateauMode::Max : optim::PlateauMode::Min;
  options.threshold_mode = is_absolute ? optim::ThresholdMode::Abs : optim::ThresholdMode::Rel;
  take(from, "factor", options.factor);
  take(from, "patience", options.patience);
  take(from, "threshold", options.threshold);
  take(from, "cooldown", options.cooldown);
  take(from, "min_lr", options.min_lr);
  take(from, "eps", options.eps);
  return options;
}

optim::CyclicLROptions cyclic(const Json& from) {
  optim::CyclicLROptions options;
  take(from, "base_lr", options.base_lr);
  take(from, "max_lr", options.max_lr);
  take(from, "step_size_up", options.step_size_up);
  const Json down = from.value("step_size_down", Json());
  if (!down.is_null()) options.step_size_down = down.get<int64_t>();
  const std::string mode = from.value("mode", "triangular");
  if (mode == "triangular2") options.mode = optim::CyclicMode::Triangular2;
  if (mode == "exp_range") options.mode = optim::CyclicMode::ExpRange;
  take(from, "gamma", options.gamma);
  take(from, "cycle_momentum", options.cycle_momentum);
  take(from, "base_momentum", options.base_momentum);
  take(from, "max_momentum", options.max_momentum);
  return options;
}

std::vector<std::shared_ptr<optim::LRScheduler>> make_schedules(torch::optim::Optimizer& optimizer,
                                                                const Json& from) {
  std::vector<std::shared_ptr<optim::LRScheduler>> parts;
  for (const Json& part : from.at("schedulers")) parts.push_back(make_schedule(optimizer, part));
  return parts;
}

std::shared_ptr<optim::LRScheduler> sequential(torch::optim::Optimizer& optimizer,
                                               const Json& from) {
  return std::make_shared<optim::SequentialLR>(optimizer, make_schedules(optimizer, from),
                                               from.at("milestones").get<std::vector<int64_t>>());
}

std::shared_ptr<optim::LRScheduler> lambda(torch::optim::Optimizer& optimizer, const Json& from) {
  std::vector<optim::LambdaLR::Lambda> all;
  for (const double decay : from.at("decays").get<std::vector<double>>()) {
    all.push_back([decay](int64_t step) { return std::pow(decay, static_cast<double>(step)); });
  }
  if (all.size() == 1) return std::make_shared<optim::LambdaLR>(optimizer, all[0]);
  return std::make_shared<optim::LambdaLR>(optimizer, all);
}

std::shared_ptr<optim::LRScheduler> multiplicative(torch::optim::Optimizer& optimizer,
                                                   const Json& from) {
  std::vector<optim::MultiplicativeLR::Lambda> all;
  for (const double decay : from.at("decays").get<std::vector<double>>()) {
    all.push_back([decay](int64_t) { return decay; });
  }
  if (all.size() == 1) return std::make_shared<optim::MultiplicativeLR>(optimizer, all[0]);
  return std::make_shared<optim::MultiplicativeLR>(optimizer, all);
}

// Half of the kinds; null for the other half.
std::shared_ptr<optim::LRScheduler> make_other_schedule(torch::optim::Optimizer& optimizer,
                                                        const Json& from) {
  const std::string kind = from.at("kind");
  if (kind == "MultiplicativeLR") return multiplicative(optimizer, from);
  if (kind == "CyclicLR") return std::make_shared<optim::CyclicLR>(optimizer, cyclic(from));
  if (kind == "ChainedScheduler") {
    return std::make_shared<optim::ChainedScheduler>(make_schedules(optimizer, from));
  }
  if (kind == "PolynomialLR") {
    optim::PolynomialLROptions options;
    take(from, "total_iters", options.total_iters);
    take(from, "power", options.power);
    return std::make_shared<optim::PolynomialLR>(optimizer, options);
  }
  return nullptr;
}

}  // namespace

std::unique_ptr<torch::optim::Optimizer> make_optimizer(const Json& setting) {
  std::vector<torch::optim::OptimizerParamGroup> groups;
  const bool is_adam = setting.at("optimizer") == "adam";
  for (const double lr : setting.at("lrs").get<std::vector<double>>()) {
    std::unique_ptr<torch::optim::OptimizerOptions> options;
    if (is_adam) {
      options = std::make_unique<torch::optim::AdamOptions>(lr);
    } else {
      options = std::make_unique<torch::optim::SGDOptions>(lr);
    }
    groups.emplace_back(std::vector<at::Tensor>{torch::zeros({1}).requires_grad_()},
                        std::move(options));
  }
  if (is_adam) return std::make_unique<torch::optim::Adam>(groups);
  return std::make_unique<torch::optim::SGD>(groups, torch::optim::SGDOptions(0.5));
}

std::shared_ptr<optim::LRScheduler> make_schedule(torch::optim::Optimizer& optimizer,
                                                  const Json& from) {
  const std::string kind = from.at("kind");
  const auto is = [&](const char* name) { return kind == name; };
  if (auto other = make_other_schedule(optimizer, from)) return other;
  if (is("SequentialLR")) return sequential(optimizer, from);
  if (is("LambdaLR")) return lambda(optimizer, from);
  if (is("OneCycleLR")) return std::make_shared<optim::OneCycleLR>(optimizer, one_cycle(from));
  if (is("ReduceLROnPlateau")) {
    return std::make_shared<optim::ReduceLROnPlateau>(optimizer, plateau(from));
  }
  if (is("ConstantLR")) {
    optim::ConstantLROptions options;
    take(from, "factor", options.factor);
    take(from, "total_iters", options.total_iters);
    return std::make_shared<optim::ConstantLR>(optimizer, options);
  }
  if (is("LinearLR")) {
    optim::LinearLROptions options;
    take(from, "start_factor", options.start_factor);
    take(from, "end_factor", options.end_factor);
    take(from, "total_iters", options.total_iters);
    return std::make_shared<optim::LinearLR>(optimizer, options);
  }
  if (is("StepLR")) {
    return std::make_shared<optim::StepLR>(
        optimizer,
        optim::StepLROptions{.step_size = from.at("step_size"), .gamma = from.value("gamma", 0.1)});
  }
  if (is("MultiStepLR")) {
    return std::make_shared<optim::MultiStepLR>(
        optimizer,
        optim::MultiStepLROptions{.milestones = from.at("milestones").get<std::vector<int64_t>>(),
                                  .gamma = from.value("gamma", 0.1)});
  }
  if (is("ExponentialLR")) {
    return std::make_shared<optim::ExponentialLR>(
        optimizer, optim::ExponentialLROptions{.gamma = from.at("gamma")});
  }
  if (is("CosineAnnealingLR")) {
    return std::make_shared<optim::CosineAnnealingLR>(
        optimizer, optim::CosineAnnealingLROptions{.T_max = from.at("T_max"),
                                                   .eta_min = from.value("eta_min", 0.0)});
  }
  if (is("CosineAnnealingWarmRestarts")) {
    return std::make_shared<optim::CosineAnnealingWarmRestarts>(
        optimizer,
        optim::CosineAnnealingWarmRestartsOptions{.T_0 = from.at("T_0"),
                                                  .T_mult = from.value("T_mult", 1),
                                                  .eta_min = from.value("eta_min", 0.0)});
  }
  throw std::invalid_argument("no schedule is called " + kind);
}

void Scheduled::step(int at) {
  if (setting_.value("halve_at", -1) == at) {
    for (auto& group : optimizer_->param_groups()) {
      group.options().set_lr(group.options().get_lr() * 0.5);
    }
  }
  if (auto* const plateau = dynamic_cast<optim::ReduceLROnPlateau*>(schedule_.get())) {
    plateau->step(setting_.at("metrics").at(static_cast<size_t>(at)).get<double>());
  } else if (auto* const restarts =
                 dynamic_cast<optim::CosineAnnealingWarmRestarts*>(schedule_.get());
             restarts && setting_.contains("places")) {
    restarts->step(setting_.at("places").at(static_cast<size_t>(at)).get<double>());
  } else {
    schedule_->step();
  }
}

std::string Scheduled::line() const {
  std::string text;
  const auto add = [&](double number) {
    char digits[32];
    std::snprintf(digits, sizeof digits, "%.17g ", number);
    text += digits;
  };
  for (auto& group : optimizer_->param_groups()) {
    add(group.options().get_lr());
    add(*optim::momentum_of(group.options()));
  }
  for (const double lr : schedule_->get_last_lr()) add(lr);
  return text;
}

}  // namespace cpprun::test
