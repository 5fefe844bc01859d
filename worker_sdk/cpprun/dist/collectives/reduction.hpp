// Which reduce operations a backend supports for which dtype, and which the SDK emulates. Private
// to dist.
#pragma once

#include <torch/csrc/distributed/c10d/Types.hpp>

#include "cpprun/dist/collectives.hpp"
#include "cpprun/dist/collectives/call.hpp"
#include "cpprun/dist/objects/tensor_packing.hpp"

namespace cpprun::dist {

struct Reduction {
  c10d::ReduceOp native;
  // Divide the result by the size of the group afterwards: AVG on gloo.
  bool divides = false;
};

// Throws DistUnsupportedError with backend, operation and dtype, or DistArgumentError if PREMUL_SUM
// has no factor.
Reduction reduction_for(const Call& call, ReduceOp op, const at::Tensor& tensor,
                        std::optional<double> factor);

// Adds the division of `result`, the backend's buffer, to the steps of `packing`.
void divide_afterwards(const Call& call, const Reduction& reduction, const at::Tensor& result,
                       TensorPacking& packing);

}  // namespace cpprun::dist
