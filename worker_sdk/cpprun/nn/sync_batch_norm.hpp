// SyncBatchNorm: batch normalisation with the statistics of all ranks' batches.
//
//   auto net = nn::convert_sync_batchnorm(std::make_shared<Net>());
//
// Python counterpart: torch.nn.SyncBatchNorm. On the CPU it works too (Python's does not).
#pragma once

#include <memory>

#include <torch/nn/module.h>
#include <torch/nn/options/batchnorm.h>

#include "cpprun/dist/process_group.hpp"

namespace cpprun::nn {

class SyncBatchNormImpl : public torch::nn::Module {
 public:
  explicit SyncBatchNormImpl(torch::nn::BatchNormOptions options, dist::ProcessGroup group = {});
  void reset();
  // (N, C, *) in and out. In eval mode, or alone, plain batch normalisation.
  at::Tensor forward(const at::Tensor& input);
  void pretty_print(std::ostream& stream) const override;

  torch::nn::BatchNormOptions options;
  at::Tensor weight, bias, running_mean, running_var, num_batches_tracked;

 private:
  dist::ProcessGroup group_;
};
TORCH_MODULE(SyncBatchNorm);

// Replaces BatchNorm1d/2d/3d anywhere below `module` and takes over parameters and statistics.
// Only children reached through AnyModule containers (Sequential) or registered by
// `replace_module` can be swapped; members of a concrete type (`BatchNorm2d bn`) are C++ fields: an
// error names them and the cure.
std::shared_ptr<torch::nn::Module> convert_sync_batchnorm(std::shared_ptr<torch::nn::Module> module,
                                                          const dist::ProcessGroup& group = {});

}  // namespace cpprun::nn
