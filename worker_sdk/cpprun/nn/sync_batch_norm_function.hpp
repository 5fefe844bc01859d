// The arithmetic and the collectives of SyncBatchNorm as one autograd function. Private to nn.
#pragma once

#include <ATen/core/Tensor.h>

#include "cpprun/dist/process_group.hpp"

namespace cpprun::nn {

struct BatchNormArguments {
  at::Tensor input;                      // (N, C, *)
  at::Tensor weight, bias;               // (C), or undefined
  at::Tensor running_mean, running_var;  // (C), updated in place; or undefined
  double eps = 0;
  double momentum = 0;
};

// Normalises `input` by the statistics of all ranks' inputs. Forward and backward are collectives.
at::Tensor sync_batch_norm(const BatchNormArguments& arguments, const dist::ProcessGroup& group);

}  // namespace cpprun::nn
