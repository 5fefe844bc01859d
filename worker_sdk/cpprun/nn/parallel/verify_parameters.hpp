// Checks of the parameters by collectives, with all ranks of the group, also those of Python: the
// two halves of c10d::verify_params_across_processes, which Python's DistributedDataParallel calls.
// Private to nn. Both throw DistMismatchError.
#pragma once

#include <vector>

#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>

namespace cpprun::nn::parallel {

// One all_gather of the number of parameters.
void verify_counts(c10d::ProcessGroup& group, const std::vector<at::Tensor>& parameters);
// One broadcast of rank 0's sizes and strides. After verify_counts().
void verify_shapes(c10d::ProcessGroup& group, const std::vector<at::Tensor>& parameters);

}  // namespace cpprun::nn::parallel
