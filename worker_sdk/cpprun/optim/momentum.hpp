// The momentum of a parameter group: `momentum` of SGD and RMSprop, the first of `betas` of Adam
// and AdamW. Private to optim.
#pragma once

#include <optional>

#include <torch/optim/optimizer.h>

namespace cpprun::optim {

// Empty for an optimizer without momentum.
std::optional<double> get_momentum(const torch::optim::OptimizerOptions& options);
void set_momentum(torch::optim::OptimizerOptions& options, double momentum);

}  // namespace cpprun::optim
