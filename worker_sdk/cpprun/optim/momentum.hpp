// The momentum of a parameter group, whatever its optimizer calls it: `momentum` of SGD and
// RMSprop, the first of `betas` of Adam and AdamW. Private to optim.
#pragma once

#include <optional>

#include <torch/optim/optimizer.h>

namespace cpprun::optim {

std::optional<double> get_momentum(
    const torch::optim::OptimizerOptions& options);  // none: has none
void set_momentum(torch::optim::OptimizerOptions& options, double momentum);

}  // namespace cpprun::optim
