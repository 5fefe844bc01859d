// clip_grad_norm_ and clip_grad_value_, on the gradients of parameters. One thread. Python
// counterpart: torch.nn.utils.clip_grad, with its numbers to the last bit.
//
// With DistributedDataParallel call them after backward: gradients are the same on all ranks then,
// and so is what is clipped. With GradScaler call its unscale_ first.
#pragma once

#include <vector>

#include <ATen/core/Tensor.h>

namespace cpprun::optim {

// Scales all gradients in place so that the norm of all of them together is at most `max_norm`.
// Returns the norm before, on the first gradient's device. Parameters without a gradient are left
// out; without any the norm is 0. With `error_if_nonfinite` throws std::runtime_error on NaN or
// infinity, and then has changed nothing.
at::Tensor clip_grad_norm_(const std::vector<at::Tensor>& parameters, double max_norm,
                           double norm_type = 2.0, bool error_if_nonfinite = false);
// Cuts each number of each gradient to -clip_value .. clip_value, in place.
void clip_grad_value_(const std::vector<at::Tensor>& parameters, double clip_value);

}  // namespace cpprun::optim
