/// @file
/// checkpoint: computes a part of a model without keeping its activations, and computes it again in
/// backward. Less memory for about a third more time. Python counterpart:
/// torch.utils.checkpoint.checkpoint with use_reentrant=True.
///
///     using cpprun::utils::checkpoint::checkpoint;
///     x = checkpoint([&](const at::Tensor& h) { return block->forward(h); }, x);
///
/// The second computation sees the random numbers (dropout) and the autocast of the first. It must
/// do the same as the first: `function` depends on its inputs, and on parameters that stay
/// unchanged until backward. It is kept until backward, so what it captures by reference must live
/// as long.
///
/// Use backward(), not torch::autograd::grad(): gradients of parameters are added to .grad(). A
/// parameter of a DistributedDataParallel may be used in one checkpoint only, and with
/// find_unused_parameters in none, as in Python. Backward runs in any thread of autograd.
#pragma once

#include <functional>
#include <vector>

#include <ATen/core/Tensor.h>

namespace cpprun::utils::checkpoint {

/// Options of checkpoint(), under Python's names.
struct CheckpointOptions {
  bool preserve_rng_state = true;  ///< false: faster, for functions without random numbers
};

/// A part of a model with any number of inputs and outputs. Undefined tensors are allowed.
using Function = std::function<std::vector<at::Tensor>(const std::vector<at::Tensor>&)>;
/// Calls `function` without a graph and returns its outputs; backward calls it again with the same
/// inputs. With gradients disabled it only calls `function`.
std::vector<at::Tensor> checkpoint(Function function, const std::vector<at::Tensor>& inputs,
                                   CheckpointOptions options = {});

/// A part of a model with one input and one output.
using TensorFunction = std::function<at::Tensor(const at::Tensor&)>;
/// The same for one tensor in and one tensor out.
at::Tensor checkpoint(TensorFunction function, const at::Tensor& input,
                      CheckpointOptions options = {});

}  // namespace cpprun::utils::checkpoint
