#include "cpprun/optim/momentum.hpp"

#include <torch/optim/adam.h>
#include <torch/optim/adamw.h>
#include <torch/optim/rmsprop.h>
#include <torch/optim/sgd.h>

namespace cpprun::optim {

double* momentum_of(torch::optim::OptimizerOptions& options) {
  using namespace torch::optim;
  if (auto* sgd = dynamic_cast<SGDOptions*>(&options)) return &sgd->momentum();
  if (auto* rmsprop = dynamic_cast<RMSpropOptions*>(&options)) return &rmsprop->momentum();
  if (auto* adam = dynamic_cast<AdamOptions*>(&options)) return &std::get<0>(adam->betas());
  if (auto* adamw = dynamic_cast<AdamWOptions*>(&options)) return &std::get<0>(adamw->betas());
  return nullptr;
}

}  // namespace cpprun::optim
