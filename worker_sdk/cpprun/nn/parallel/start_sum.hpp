// A sum over the ranks that runs while others are started. Private to nn.
#pragma once

#include <functional>

#include <ATen/core/Tensor.h>

#include "cpprun/dist/native.hpp"

namespace cpprun::nn::parallel {

// Starts it, in place; the result waits for it and throws what went wrong.
std::function<void()> start_sum(const dist::ProcessGroup& group, const at::Tensor& tensor);

}  // namespace cpprun::nn::parallel
