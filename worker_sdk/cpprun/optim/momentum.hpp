// The momenta of an optimizer's parameter groups. Private to optim.
#pragma once

#include <torch/optim/optimizer.h>

#include <vector>

#include "cpprun/optim/state_fields.hpp"

namespace cpprun::optim {

// `momentum` of SGD and RMSprop, the first of `betas` of Adam and AdamW. Null: the optimizer has
// none.
double* momentum_of(torch::optim::OptimizerOptions& options);

// One for each group; 0 for a group without.
std::vector<double> momenta_of(torch::optim::Optimizer& optimizer);
void set_momenta(torch::optim::Optimizer& optimizer, const std::vector<double>& momenta);

// What the schedulers that cycle momenta share. Throws std::invalid_argument if the first group has
// none.
void require_momentum(torch::optim::Optimizer& optimizer);
// The field "momentum": the momenta at present, an empty list if the scheduler does not cycle them.
void momentum_field(StateFields& fields, torch::optim::Optimizer& optimizer, bool cycle_momentum);

}  // namespace cpprun::optim
