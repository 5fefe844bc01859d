// The momenta of an optimizer's parameter groups. Private to optim.
#pragma once

#include <torch/optim/optimizer.h>

#include <vector>

namespace cpprun::optim {

// `momentum` of SGD and RMSprop, the first of `betas` of Adam and AdamW. Null: the optimizer has
// none.
double* momentum_of(torch::optim::OptimizerOptions& options);

// One for each group; 0 for a group without.
std::vector<double> momenta_of(torch::optim::Optimizer& optimizer);
void set_momenta(torch::optim::Optimizer& optimizer, const std::vector<double>& momenta);

}  // namespace cpprun::optim
