#include "cpprun/optim/momentum.hpp"

#include <torch/optim/adam.h>
#include <torch/optim/adamw.h>
#include <torch/optim/rmsprop.h>
#include <torch/optim/sgd.h>

#include <stdexcept>

namespace cpprun::optim {

double* momentum_of(torch::optim::OptimizerOptions& options) {
  using namespace torch::optim;
  if (auto* sgd = dynamic_cast<SGDOptions*>(&options)) return &sgd->momentum();
  if (auto* rmsprop = dynamic_cast<RMSpropOptions*>(&options)) return &rmsprop->momentum();
  if (auto* adam = dynamic_cast<AdamOptions*>(&options)) return &std::get<0>(adam->betas());
  if (auto* adamw = dynamic_cast<AdamWOptions*>(&options)) return &std::get<0>(adamw->betas());
  return nullptr;
}

std::vector<double> momenta_of(torch::optim::Optimizer& optimizer) {
  std::vector<double> all;
  for (auto& group : optimizer.param_groups()) {
    const double* momentum = momentum_of(group.options());
    all.push_back(momentum == nullptr ? 0 : *momentum);
  }
  return all;
}

void set_momenta(torch::optim::Optimizer& optimizer, const std::vector<double>& momenta) {
  auto& groups = optimizer.param_groups();
  for (size_t i = 0; i < groups.size() && i < momenta.size(); ++i) {
    if (double* momentum = momentum_of(groups[i].options())) *momentum = momenta[i];
  }
}

void require_momentum(torch::optim::Optimizer& optimizer) {
  if (momentum_of(optimizer.param_groups().at(0).options()) != nullptr) return;
  throw std::invalid_argument(
      "optimizer must support momentum or beta1 with `cycle_momentum` option enabled");
}

void momentum_field(StateFields& fields, torch::optim::Optimizer& optimizer, bool cycle_momentum) {
  std::vector<double> present;
  if (cycle_momentum) present = momenta_of(optimizer);
  fields("momentum", present);
  if (!fields.is_saving() && !fields.is_trial()) set_momenta(optimizer, present);
}

}  // namespace cpprun::optim
