// Which reduce operation a backend does for which dtype, and what the SDK adds. Private to dist.
#pragma once

#include <torch/csrc/distributed/c10d/Types.hpp>

#include "cpprun/dist/collectives.hpp"
#include "cpprun/dist/collectives/call.hpp"
#include "cpprun/dist/objects/tensor_packing.hpp"

namespace cpprun::dist {

struct Reduction {
  c10d::ReduceOp native;
  // The result is divided by the size of the group afterwards: AVG on gloo.
  bool divides = false;
};

// Throws DistUnsupportedError, which names backend, operation and dtype, or DistArgumentError when
// PREMUL_SUM comes without a factor.
Reduction reduction_for(const Call& call, ReduceOp op, const at::Tensor& tensor,
                        std::optional<double> factor);

// Adds the division of `result`, as the backend wrote it, to what `packing` does afterwards.
void divide_afterwards(const Call& call, const Reduction& reduction, const at::Tensor& result,
                       TensorPacking& packing);

}  // namespace cpprun::dist
