// SyncBatchNorm: batch normalisation with the statistics of all ranks' batches.
//
//   nn::SyncBatchNorm norm{torch::nn::BatchNormOptions(64)};         // instead of BatchNorm2d
//   nn::convert_sync_batchnorm(net);                                 // in Sequentials of `net`
//
// A training step with it is that of plain batch normalisation on the joined batch, whatever part
// each rank has; an empty part is fine. Each forward makes one collective, each backward another:
// all ranks must run the layer in the same order. Python counterpart: torch.nn.SyncBatchNorm; on
// the CPU it works too (Python's does not).
#pragma once

#include <memory>

#include <torch/nn/module.h>
#include <torch/nn/options/batchnorm.h>
#include <torch/nn/pimpl.h>

#include "cpprun/dist/process_group.hpp"

namespace cpprun::nn {

class SyncBatchNormImpl : public torch::nn::Module {
 public:
  // An empty group: the default one, asked for at each forward.
  explicit SyncBatchNormImpl(torch::nn::BatchNormOptions options, dist::ProcessGroup group = {});
  explicit SyncBatchNormImpl(int64_t features)
      : SyncBatchNormImpl(torch::nn::BatchNormOptions(features)) {}
  // Takes over these tensors instead of making its own; undefined ones are those it goes without.
  struct Tensors {
    at::Tensor weight, bias, running_mean, running_var, num_batches_tracked;
  };
  SyncBatchNormImpl(torch::nn::BatchNormOptions options, const Tensors& tensors,
                    dist::ProcessGroup group);
  // (N, C, *) in and out, floating point. In eval mode, without a group or alone in it, plain batch
  // normalisation. Throws std::invalid_argument for other shapes.
  at::Tensor forward(const at::Tensor& input);
  void pretty_print(std::ostream& stream) const override;

  torch::nn::BatchNormOptions options;
  // Names and order as in BatchNorm; undefined where the options say so.
  at::Tensor weight, bias, running_mean, running_var, num_batches_tracked;

 private:
  bool is_synchronised(bool uses_batch) const;
  double next_momentum();

  dist::ProcessGroup group_;
};
TORCH_MODULE(SyncBatchNorm);

// Replaces BatchNorm1d/2d/3d anywhere below `module` and hands over parameters (the same tensors)
// and statistics; call it before making the optimizer. Returns the result: `module` itself, or a
// new layer if `module` is a BatchNorm.
//
// Only children of Sequential can be swapped. A member of a concrete type
// (`BatchNorm2d bn{nullptr}`) is a C++ field that nobody can retype: std::invalid_argument names
// all of them and the cure, and nothing is changed.
std::shared_ptr<torch::nn::Module> convert_sync_batchnorm(std::shared_ptr<torch::nn::Module> module,
                                                          const dist::ProcessGroup& group = {});

}  // namespace cpprun::nn
