// An asynchronous sum over the ranks. Private to nn.
#pragma once

#include <functional>

#include <ATen/core/Tensor.h>

#include "cpprun/dist/native.hpp"

namespace cpprun::nn::parallel {

// Starts the sum, in place. Call the result to wait for it; it throws the error of the sum.
std::function<void()> start_sum(const dist::ProcessGroup& group, const at::Tensor& tensor);

}  // namespace cpprun::nn::parallel
