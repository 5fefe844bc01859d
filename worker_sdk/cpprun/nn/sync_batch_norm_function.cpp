#include "cpprun/nn/sync_batch_norm_function.hpp"

#include <ATen/Functions.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/custom_class.h>

#include "cpprun/dist/backend/error_translation.hpp"
#include "cpprun/dist/native.hpp"

namespace cpprun::nn {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

struct GroupHolder : torch::CustomClassHolder {
  explicit GroupHolder(dist::ProcessGroup g) : group(std::move(g)) {}
  dist::ProcessGroup group;
};

// The result of the forward's collective, the same on all ranks.
struct Statistics {
  at::Tensor mean, invstd;  // (C), of the joined batch
  at::Tensor counts;        // (ranks with a batch), int: values per channel
};

std::vector<int64_t> all_but_channels(const at::Tensor& input) {
  std::vector<int64_t> dims{0};
  for (int64_t dim = 2; dim < input.dim(); ++dim) dims.push_back(dim);
  return dims;
}

// Reshapes (C) to (1, C, 1, ...), to broadcast over `input`.
at::Tensor spread(const at::Tensor& channels, const at::Tensor& input) {
  std::vector<int64_t> shape(static_cast<size_t>(input.dim()), 1);
  shape[1] = -1;
  return channels.view(shape);
}

int64_t values_per_channel(const at::Tensor& input) {
  return input.size(1) == 0 ? 0 : input.numel() / input.size(1);
}

at::Tensor gathered(const dist::ProcessGroup& group, const at::Tensor& own) {
  const auto pg = dist::native(group);
  std::vector<at::Tensor> inputs{own};
  std::vector<std::vector<at::Tensor>> outputs(1);
  for (int rank = 0; rank < pg->getSize(); ++rank) outputs[0].push_back(at::empty_like(own));
  dist::translated("SyncBatchNorm forward", group, [&] { pg->allgather(outputs, inputs)->wait(); });
  const at::Tensor all = at::stack(outputs[0]);
  return all.index({all.select(1, -1).ge(1)});  // drops ranks without values
}

void sum_over_ranks(const dist::ProcessGroup& group, at::Tensor& tensor) {
  std::vector<at::Tensor> tensors{tensor};
  dist::translated("SyncBatchNorm backward", group,
                   [&] { dist::native(group)->allreduce(tensors)->wait(); });
}

// The CPU has no kernels for this. Computes in doubles, as plain batch normalisation accumulates.
Statistics cpu_statistics(const BatchNormArguments& a, const dist::ProcessGroup& group) {
  const int64_t channels = a.input.size(1);
  at::Tensor own = at::zeros({2 * channels + 1}, a.input.options().dtype(at::kDouble));
  if (a.input.numel() > 0) {
    const auto dims = all_but_channels(a.input);
    const at::Tensor wide = a.input.to(at::kDouble);
    const auto [variance, mean] = at::var_mean(wide, dims, /*correction=*/0, /*keepdim=*/false);
    own = at::cat({mean, variance, at::full({1}, values_per_channel(a.input), mean.options())});
  }
  const at::Tensor all = gathered(group, own);
  const at::Tensor counts = all.select(1, -1);
  const at::Tensor weights = (counts / counts.sum()).unsqueeze(1);
  const at::Tensor means = all.narrow(1, 0, channels);
  const at::Tensor variances = all.narrow(1, channels, channels);
  const at::Tensor mean = (weights * means).sum(0);
  const at::Tensor variance = (weights * (variances + (means - mean).square())).sum(0);
  if (a.running_mean.defined()) {
    const double total = counts.sum().item<double>();
    a.running_mean.mul_(1 - a.momentum).add_(mean * a.momentum);
    a.running_var.mul_(1 - a.momentum).add_(variance * (a.momentum * total / (total - 1)));
  }
  return {mean, at::rsqrt(variance + a.eps), counts.to(at::kInt)};
}

Statistics cuda_statistics(const BatchNormArguments& a, const dist::ProcessGroup& group) {
  const int64_t channels = a.input.size(1);
  at::Tensor own;
  if (a.input.numel() > 0) {
    const auto [mean, invstd] = at::batch_norm_stats(a.input, a.eps);
    own = at::cat({mean, invstd, at::full({1}, values_per_channel(a.input), mean.options())});
  } else {
    own = at::zeros({2 * channels + 1}, a.input.options());
  }
  const at::Tensor all = gathered(group, own);
  const at::Tensor counts = all.select(1, -1).contiguous();
  const at::Tensor running = a.running_mean;
  const auto [mean, invstd] = at::batch_norm_gather_stats_with_counts(
      a.input, all.narrow(1, 0, channels).contiguous(),
      all.narrow(1, channels, channels).contiguous(), running, a.running_var, a.momentum, a.eps,
      running.defined() ? counts.to(running.scalar_type()) : counts);
  return {mean, invstd, counts.to(at::kInt)};
}

at::Tensor normalised(const BatchNormArguments& a, const Statistics& known) {
  if (a.input.numel() == 0) return at::empty_like(a.input);
  if (a.input.is_cuda()) {
    return at::batch_norm_elemt(a.input, a.weight, a.bias, known.mean, known.invstd, a.eps);
  }
  at::Tensor scale = known.invstd;
  if (a.weight.defined()) scale = scale * a.weight;
  at::Tensor shift = -known.mean * scale;
  if (a.bias.defined()) shift = shift + a.bias;
  return (a.input.to(at::kDouble) * spread(scale, a.input) + spread(shift, a.input))
      .to(a.input.scalar_type());
}

// Sums over this rank's batch, each of shape (C).
struct LocalSums {
  at::Tensor dy, dy_xmu;  // xmu: input minus mean
  at::Tensor weight, bias;
};

LocalSums local_sums(const at::Tensor& gradient, const at::Tensor& input, const at::Tensor& weight,
                     const Statistics& known) {
  if (input.numel() == 0) {
    const at::Tensor zero = at::zeros({input.size(1)}, known.mean.options());
    const at::Tensor none = weight.defined() ? at::zeros_like(weight) : at::Tensor();
    return {zero, zero, none, none};
  }
  if (input.is_cuda()) {
    auto [dy, dy_xmu, dw, db] = at::batch_norm_backward_reduce(
        gradient, input, known.mean, known.invstd, weight, true, true, true);
    return {dy, dy_xmu, dw, db};
  }
  const auto dims = all_but_channels(input);
  const at::Tensor wide = gradient.to(at::kDouble);
  const at::Tensor dy = wide.sum(dims);
  const at::Tensor dy_xmu = (wide * (input.to(at::kDouble) - spread(known.mean, input))).sum(dims);
  if (!weight.defined()) return {dy, dy_xmu, {}, {}};
  return {dy, dy_xmu, (dy_xmu * known.invstd).to(weight.scalar_type()),
          dy.to(weight.scalar_type())};
}

at::Tensor input_gradient(const at::Tensor& gradient, const at::Tensor& input,
                          const at::Tensor& weight, const Statistics& known,
                          const at::Tensor& sums) {
  const int64_t channels = input.size(1);
  const at::Tensor dy = sums.narrow(0, 0, channels);
  const at::Tensor dy_xmu = sums.narrow(0, channels, channels);
  if (input.is_cuda()) {
    const at::Tensor same_type = weight.defined() ? weight.to(known.mean.scalar_type()) : weight;
    return at::batch_norm_backward_elemt(gradient, input, known.mean, known.invstd, same_type,
                                         dy.contiguous(), dy_xmu.contiguous(), known.counts);
  }
  const auto total = static_cast<double>(known.counts.sum().item<int64_t>());
  at::Tensor scale = known.invstd;
  if (weight.defined()) scale = scale * weight;
  const at::Tensor slope = known.invstd.square() * dy_xmu / total;
  const at::Tensor xmu = input.to(at::kDouble) - spread(known.mean, input);
  return ((gradient.to(at::kDouble) - spread(dy / total, input) - xmu * spread(slope, input)) *
          spread(scale, input))
      .to(input.scalar_type());
}

struct SyncBatchNormFunction : torch::autograd::Function<SyncBatchNormFunction> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& input,
                            const at::Tensor& weight, const at::Tensor& bias,
                            const BatchNormArguments& rest, const dist::ProcessGroup& group) {
    BatchNormArguments a = rest;
    a.input = input;
    a.weight = weight;
    a.bias = bias;
    const Statistics known = input.is_cuda() ? cuda_statistics(a, group) : cpu_statistics(a, group);
    context->save_for_backward({input, weight, known.mean, known.invstd, known.counts});
    context->saved_data["group"] =
        c10::IValue::make_capsule(c10::make_intrusive<GroupHolder>(group));
    return normalised(a, known);
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const auto saved = context->get_saved_variables();
    const Statistics known{saved[2], saved[3], saved[4]};
    const at::Tensor& input = saved[0];
    const at::Tensor& weight = saved[1];
    const at::Tensor gradient = gradients[0].contiguous(input.suggest_memory_format());
    const auto holder = context->saved_data["group"].toCapsule();
    const auto& group = static_cast<GroupHolder&>(*holder).group;
    const LocalSums sums = local_sums(gradient, input, weight, known);
    at::Tensor to_input;
    if (context->needs_input_grad(0)) {
      at::Tensor joined = at::cat({sums.dy, sums.dy_xmu});
      sum_over_ranks(group, joined);
      to_input = input.numel() == 0 ? at::zeros_like(input)
                                    : input_gradient(gradient, input, weight, known, joined);
    }
    // Gradients of weight and bias stay local: DistributedDataParallel averages them.
    return {to_input, sums.weight, sums.bias, {}, {}};
  }
};

}  // namespace

at::Tensor sync_batch_norm(const BatchNormArguments& a, const dist::ProcessGroup& group) {
  const at::Tensor input = a.input.contiguous(a.input.suggest_memory_format());
  return SyncBatchNormFunction::apply(input, a.weight, a.bias, a, group);
}

}  // namespace cpprun::nn
