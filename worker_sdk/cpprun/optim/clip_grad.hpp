// clip_grad_norm_ and clip_grad_value_. Python counterpart: torch.nn.utils.clip_grad.
#pragma once

#include <vector>

#include <ATen/core/Tensor.h>

namespace cpprun::optim {

// Scales all gradients in place so that the norm of all of them together is at most `max_norm`.
// Returns the norm before. The same numbers as Python's, to the last bit. Undefined gradients are
// left out. With `error_if_nonfinite` throws std::runtime_error on NaN or infinity.
at::Tensor clip_grad_norm_(const std::vector<at::Tensor>& parameters, double max_norm,
                           double norm_type = 2.0, bool error_if_nonfinite = false);
void clip_grad_value_(const std::vector<at::Tensor>& parameters, double clip_value);

}  // namespace cpprun::optim
