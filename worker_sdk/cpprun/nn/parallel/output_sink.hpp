// An identity function at the end of the graph that reports the start of backward. Private to nn.
#pragma once

#include <functional>
#include <vector>

#include <ATen/core/Tensor.h>

namespace cpprun::nn::parallel {

// Replaces each of `outputs` that has a graph by a copy. `on_backward` runs at the start of their
// backward (once per pass through it). Outputs that the loss does not use keep undefined gradients,
// so parameters that only they depend on count as unused.
void pass_through_sink(const std::vector<at::Tensor*>& outputs, std::function<void()> on_backward);

}  // namespace cpprun::nn::parallel
