// The arithmetic of SyncBatchNorm, with its collectives, as one step of autograd. Private to nn.
#pragma once

#include <ATen/core/Tensor.h>

#include "cpprun/dist/process_group.hpp"

namespace cpprun::nn {

struct BatchNormArguments {
  at::Tensor input;                      // (N, C, *)
  at::Tensor weight, bias;               // (C), or undefined
  at::Tensor running_mean, running_var;  // (C), updated; or undefined
  double eps = 0;
  double momentum = 0;
};

// `input` normalised by the statistics of all ranks' inputs. Collective, and so is its backward.
at::Tensor sync_batch_norm(const BatchNormArguments& arguments, const dist::ProcessGroup& group);

}  // namespace cpprun::nn
