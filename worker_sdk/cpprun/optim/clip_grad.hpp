/// @file
/// clip_grad_norm_ and clip_grad_value_ change the gradients of parameters. One thread. Python
/// counterpart: torch.nn.utils.clip_grad, with bitwise equal results.
///
/// With DistributedDataParallel call them after backward, when gradients are equal on all ranks.
/// With GradScaler call unscale_() first.
#pragma once

#include <vector>

#include <ATen/core/Tensor.h>

namespace cpprun::optim {

/// Scales all gradients in place so that their total norm is at most `max_norm`. Returns the total
/// norm before scaling, a scalar on the device of the first gradient. Ignores parameters without a
/// gradient; without any gradient the norm is 0. With `error_if_nonfinite`, throws
/// std::runtime_error on NaN or infinity, before any change.
at::Tensor clip_grad_norm_(const std::vector<at::Tensor>& parameters, double max_norm,
                           double norm_type = 2.0, bool error_if_nonfinite = false);
/// Clamps each element of each gradient to [-clip_value, clip_value], in place.
void clip_grad_value_(const std::vector<at::Tensor>& parameters, double clip_value);

}  // namespace cpprun::optim

// The namespace of torch.nn.utils.
namespace cpprun::nn::utils {
using optim::clip_grad_norm_;
using optim::clip_grad_value_;
}  // namespace cpprun::nn::utils
