#include "cpprun/nn/sync_batch_norm.hpp"

#include <ostream>
#include <stdexcept>

#include <ATen/Functions.h>

#include "cpprun/nn/sync_batch_norm_function.hpp"

namespace cpprun::nn {

namespace {

SyncBatchNormImpl::Tensors fresh(const torch::nn::BatchNormOptions& options) {
  const auto size = options.num_features();
  SyncBatchNormImpl::Tensors tensors;
  if (options.affine()) {
    tensors.weight = at::ones({size}).requires_grad_(true);
    tensors.bias = at::zeros({size}).requires_grad_(true);
  }
  if (options.track_running_stats()) {
    tensors.running_mean = at::zeros({size});
    tensors.running_var = at::ones({size});
    tensors.num_batches_tracked = at::zeros({}, at::kLong);
  }
  return tensors;
}

// Keeps the parameters of a frozen layer frozen.
bool gradients(const at::Tensor& tensor) { return tensor.defined() && tensor.requires_grad(); }

}  // namespace

SyncBatchNormImpl::SyncBatchNormImpl(torch::nn::BatchNormOptions options_, dist::ProcessGroup group)
    : SyncBatchNormImpl(options_, fresh(options_), std::move(group)) {}

SyncBatchNormImpl::SyncBatchNormImpl(torch::nn::BatchNormOptions options_, const Tensors& tensors,
                                     dist::ProcessGroup group)
    : torch::nn::Module("SyncBatchNorm"), options(std::move(options_)), group_(std::move(group)) {
  weight = register_parameter("weight", tensors.weight, gradients(tensors.weight));
  bias = register_parameter("bias", tensors.bias, gradients(tensors.bias));
  running_mean = register_buffer("running_mean", tensors.running_mean);
  running_var = register_buffer("running_var", tensors.running_var);
  num_batches_tracked = register_buffer("num_batches_tracked", tensors.num_batches_tracked);
}

// Counts the batch. Without momentum, all batches have the same weight.
double SyncBatchNormImpl::next_momentum() {
  if (is_training() && num_batches_tracked.defined()) {
    const at::NoGradGuard no_grad;
    num_batches_tracked.add_(1);
    if (!options.momentum()) return 1.0 / num_batches_tracked.item<double>();
  }
  return options.momentum().value_or(0.0);
}

bool SyncBatchNormImpl::is_synchronised(bool uses_batch) const {
  if (!uses_batch || !is_training() || (!group_ && !dist::is_initialized())) return false;
  return dist::get_world_size(group_) > 1;
}

at::Tensor SyncBatchNormImpl::forward(const at::Tensor& input) {
  if (input.dim() < 2 || input.size(1) != options.num_features()) {
    throw std::invalid_argument("SyncBatchNorm: the input has the shape " +
                                c10::str(input.sizes()) +
                                ", but must have at least 2 dimensions, the "
                                "second of them " +
                                std::to_string(options.num_features()) + " long");
  }
  const double momentum = next_momentum();
  const bool uses_batch = is_training() || !running_mean.defined();
  const bool tracks = !is_training() || options.track_running_stats();
  const at::Tensor mean = tracks ? running_mean : at::Tensor();
  const at::Tensor variance = tracks ? running_var : at::Tensor();
  if (is_synchronised(uses_batch)) {
    return sync_batch_norm({input, weight, bias, mean, variance, options.eps(), momentum},
                           group_ ? group_ : dist::default_group());
  }
  return at::batch_norm(input, weight, bias, mean, variance, uses_batch, momentum, options.eps(),
                        at::globalContext().userEnabledCuDNN());
}

void SyncBatchNormImpl::pretty_print(std::ostream& stream) const {
  stream << std::boolalpha << "cpprun::nn::SyncBatchNorm(" << options.num_features()
         << ", eps=" << options.eps() << ", momentum=";
  if (options.momentum()) {
    stream << *options.momentum();
  } else {
    stream << "none";
  }
  stream << ", affine=" << options.affine()
         << ", track_running_stats=" << options.track_running_stats() << ")";
}

}  // namespace cpprun::nn
