#include "cpprun/nn/sync_batch_norm.hpp"

#include <ATen/Functions.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/custom_class.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/container/any.h>
#include <torch/nn/modules/container/sequential.h>

#include <functional>
#include <ostream>
#include <stdexcept>
#include <vector>

#include "cpprun/dist/backend/error_translation.hpp"
#include "cpprun/dist/native.hpp"

namespace cpprun::nn {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;
using torch::nn::Module;
using SyncPtr = std::shared_ptr<SyncBatchNormImpl>;

struct BatchNormArguments {
  at::Tensor input;                      // (N, C, *)
  at::Tensor weight, bias;               // (C), or undefined
  at::Tensor running_mean, running_var;  // (C), updated in place; or undefined
  double eps = 0;
  double momentum = 0;
};

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

// Normalises `input` by the statistics of all ranks' inputs. Forward and backward are collectives.
at::Tensor sync_batch_norm(const BatchNormArguments& a, const dist::ProcessGroup& group) {
  const at::Tensor input = a.input.contiguous(a.input.suggest_memory_format());
  return SyncBatchNormFunction::apply(input, a.weight, a.bias, a, group);
}

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

template <class Norm>
SyncPtr converted_as(const Norm& norm, const dist::ProcessGroup& group) {
  auto sync = std::make_shared<SyncBatchNormImpl>(
      norm.options,
      SyncBatchNormImpl::Tensors{norm.weight, norm.bias, norm.running_mean, norm.running_var,
                                 norm.num_batches_tracked},
      group);
  sync->train(norm.is_training());
  return sync;
}

// Null if `module` is no BatchNorm.
SyncPtr converted(const Module& module, const dist::ProcessGroup& group) {
  if (const auto* norm = module.as<torch::nn::BatchNorm1dImpl>()) return converted_as(*norm, group);
  if (const auto* norm = module.as<torch::nn::BatchNorm2dImpl>()) return converted_as(*norm, group);
  if (const auto* norm = module.as<torch::nn::BatchNorm3dImpl>()) return converted_as(*norm, group);
  return nullptr;
}

// Finds all replacements first, so that a module that cannot be converted stays unchanged.
class Plan {
 public:
  explicit Plan(const dist::ProcessGroup& group) : group_(group) {}

  void visit(const std::string& path, Module& module) {
    size_t index = 0;
    for (const auto& child : module.named_children()) {
      const std::string name = path.empty() ? child.key() : path + "." + child.key();
      if (SyncPtr sync = converted(*child.value(), group_)) {
        plan_swap(name, module, child.key(), index, std::move(sync));
      } else {
        visit(name, *child.value());
      }
      ++index;
    }
  }

  void apply() const {
    if (!fixed_.empty()) {
      throw std::invalid_argument("convert_sync_batchnorm: can't swap " + fixed_ +
                                  ": a C++ member has one type for ever. Declare it as "
                                  "cpprun::nn::SyncBatchNorm, or put it "
                                  "into a torch::nn::Sequential");
    }
    for (const auto& swap : swaps_) swap();
  }

 private:
  void plan_swap(const std::string& name, Module& parent, const std::string& key, size_t index,
                 SyncPtr sync) {
    auto* sequence = parent.as<torch::nn::SequentialImpl>();
    if (sequence == nullptr) {
      fixed_ += (fixed_.empty() ? "" : ", ") + name;
      return;
    }
    swaps_.emplace_back([sequence, key, index, sync] {
      *(sequence->begin() + static_cast<std::ptrdiff_t>(index)) = torch::nn::AnyModule(sync);
      sequence->replace_module(key, sync);
    });
  }

  dist::ProcessGroup group_;
  std::string fixed_;  // paths of members that cannot be replaced
  std::vector<std::function<void()>> swaps_;
};

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

std::shared_ptr<Module> convert_sync_batchnorm(std::shared_ptr<Module> module,
                                               const dist::ProcessGroup& group) {
  if (!module) throw std::invalid_argument("convert_sync_batchnorm: the module is empty");
  if (SyncPtr sync = converted(*module, group)) return sync;
  Plan plan(group);
  plan.visit("", *module);
  plan.apply();
  return module;
}

}  // namespace cpprun::nn
