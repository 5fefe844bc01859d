/// @file
/// SyncBatchNorm: batch normalisation with the statistics of all ranks' batches. Python
/// counterpart: torch.nn.SyncBatchNorm; this one works on the CPU too.
///
///     nn::SyncBatchNorm norm{torch::nn::BatchNormOptions(64)};         // instead of BatchNorm2d
///     nn::convert_sync_batchnorm(net);                                 // in Sequentials of `net`
///
/// A training step equals that of BatchNorm on the joined batch, however the batch is divided; a
/// rank's batch may be empty. Each forward makes one collective, each backward another, so all
/// ranks must run the layer in the same order. One thread. Errors of the collectives:
/// dist/errors.hpp.
#pragma once

#include <memory>

#include <torch/nn/module.h>
#include <torch/nn/options/batchnorm.h>
#include <torch/nn/pimpl.h>

#include "cpprun/dist/process_group.hpp"

namespace cpprun::nn {

/// Batch normalisation with the statistics of all ranks' batches. Python counterpart:
/// torch.nn.SyncBatchNorm. Use it through the holder SyncBatchNorm.
class SyncBatchNormImpl : public torch::nn::Module {
 public:
  /// `group` empty: the default group at the time of each forward.
  explicit SyncBatchNormImpl(torch::nn::BatchNormOptions options, dist::ProcessGroup group = {});
  /// The options of torch::nn::BatchNormOptions(features) and the default group.
  explicit SyncBatchNormImpl(int64_t features)
      : SyncBatchNormImpl(torch::nn::BatchNormOptions(features)) {}
  /// Uses these tensors instead of new ones; undefined: the layer has no such tensor.
  struct Tensors {
    /// @{
    /// The layer's parameters and buffers, each of shape (C); `num_batches_tracked` is a scalar.
    at::Tensor weight, bias, running_mean, running_var, num_batches_tracked;
    /// @}
  };
  /// For convert_sync_batchnorm(): keeps `tensors`, not copies of them.
  SyncBatchNormImpl(torch::nn::BatchNormOptions options, const Tensors& tensors,
                    dist::ProcessGroup group);
  /// Input and output: (N, C, *), floating point. In eval mode, without a group, or in a group of
  /// one, this is plain batch normalisation. Throws std::invalid_argument for other shapes.
  at::Tensor forward(const at::Tensor& input);
  /// Prints the layer as LibTorch prints its own.
  void pretty_print(std::ostream& stream) const override;

  /// Those of the constructor; forward() reads eps and momentum.
  torch::nn::BatchNormOptions options;
  /// @{
  /// Names and order as in BatchNorm, shape (C), `num_batches_tracked` a scalar; undefined if the
  /// options disable them.
  at::Tensor weight, bias, running_mean, running_var, num_batches_tracked;
  /// @}

 private:
  bool is_synchronised(bool uses_batch) const;
  double next_momentum();

  dist::ProcessGroup group_;
};
/// The holder of a SyncBatchNormImpl, as LibTorch's own layers have one.
TORCH_MODULE(SyncBatchNorm);

/// Replaces BatchNorm1d/2d/3d layers in `module` by SyncBatchNorm layers with the same parameter
/// tensors and statistics; call it before you make the optimizer. Returns `module`, or a new layer
/// if `module` itself is a BatchNorm. Python counterpart:
/// torch.nn.SyncBatchNorm.convert_sync_batchnorm.
///
/// Only children of a Sequential can be replaced, because the type of a C++ member (`BatchNorm2d
/// bn{nullptr}`) is fixed: then std::invalid_argument names all such members and the remedy, and
/// `module` is unchanged.
std::shared_ptr<torch::nn::Module> convert_sync_batchnorm(std::shared_ptr<torch::nn::Module> module,
                                                          const dist::ProcessGroup& group = {});

}  // namespace cpprun::nn
