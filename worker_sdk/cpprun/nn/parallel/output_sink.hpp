// An identity at the end of the graph that tells when backward begins. Private to nn.
#pragma once

#include <functional>
#include <vector>

#include <ATen/core/Tensor.h>

namespace cpprun::nn::parallel {

// Replaces those of `outputs` that have a graph by copies. `on_backward` runs at the beginning of
// their backward (once per pass through it). Outputs that the loss does not use keep undefined
// gradients, so parameters behind them count as unused.
void pass_through_sink(const std::vector<at::Tensor*>& outputs, std::function<void()> on_backward);

}  // namespace cpprun::nn::parallel
