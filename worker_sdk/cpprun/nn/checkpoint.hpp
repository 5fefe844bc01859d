/// @file
/// checkpoint: computes a part of a model without keeping its activations, and computes it again in
/// backward. Less memory for about a third more time. checkpoint_sequential: the same for the
/// segments of a list of modules. Python counterparts: torch.utils.checkpoint.checkpoint and
/// checkpoint_sequential, with use_reentrant=True.
///
///     using cpprun::utils::checkpoint::checkpoint;
///     x = checkpoint([&](const at::Tensor& h) { return block->forward(h); }, x);
///     x = cpprun::utils::checkpoint::checkpoint_sequential(sequential, 4, x);
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
#include <torch/nn/modules/container/sequential.h>

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

/// @{
/// Calls the functions, or the modules of a Sequential, one after the other, in `segments` parts of
/// functions.size() / segments functions each. The last part takes the rest too and keeps its
/// activations; each other part is a checkpoint(). Each function takes one tensor and returns one.
/// The functions, and the modules, are kept until backward. std::invalid_argument: `segments` is
/// less than 1 or more than the number of functions.
at::Tensor checkpoint_sequential(const std::vector<TensorFunction>& functions, int64_t segments,
                                 const at::Tensor& input, CheckpointOptions options = {});
at::Tensor checkpoint_sequential(const torch::nn::Sequential& functions, int64_t segments,
                                 const at::Tensor& input, CheckpointOptions options = {});
/// @}

}  // namespace cpprun::utils::checkpoint
