// The momentum of a parameter group. Private to optim.
#pragma once

#include <torch/optim/optimizer.h>

namespace cpprun::optim {

// `momentum` of SGD and RMSprop, the first of `betas` of Adam and AdamW. Null: the optimizer has
// none.
double* momentum_of(torch::optim::OptimizerOptions& options);

}  // namespace cpprun::optim
