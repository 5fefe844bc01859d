#include "cpprun/optim/fused.hpp"

#include <ATen/ops/_fused_adam.h>
#include <ATen/ops/_fused_adamw.h>
#include <ATen/ops/_fused_sgd.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros_like.h>
#include <torch/types.h>

#include <map>
#include <memory>
#include <optional>
#include <tuple>
#include <vector>

namespace cpprun::optim {
namespace {

using torch::optim::Optimizer;
using Tensors = std::vector<at::Tensor>;

// Parameters that one call updates, and their state, named as in LibTorch's operators.
struct Bucket {
  Tensors parameters, gradients, first, second, second_max;
};
// By device, dtype and number of this step; for SGD the number is 1 before the first momentum, else
// 2.
using Key = std::tuple<at::DeviceType, at::DeviceIndex, at::ScalarType, int64_t>;
using Buckets = std::map<Key, Bucket>;

Bucket& bucket_of(const at::Tensor& parameter, int64_t step, Buckets& buckets) {
  const at::Device device = parameter.device();
  return buckets[{device.type(), device.index(), parameter.scalar_type(), step}];
}

at::Tensor loss_of(const Optimizer::LossClosure& closure) {
  if (!closure) return {};
  const torch::AutoGradMode enable_grad(true);
  return closure();
}

// The state of a parameter; created if there is none.
template <class State>
State& state_of(Optimizer& optimizer, const at::Tensor& parameter) {
  auto& slot = optimizer.state()[parameter.unsafeGetTensorImpl()];
  if (!slot) slot = std::make_unique<State>();
  return static_cast<State&>(*slot);
}

void step_group(FusedSGD& optimizer, const Tensors& parameters,
                const torch::optim::SGDOptions& options) {
  const bool has_momentum = options.momentum() != 0;
  Buckets buckets;
  for (const at::Tensor& parameter : parameters) {
    const at::Tensor& gradient = parameter.grad();
    if (!gradient.defined()) continue;
    int64_t step = 2;
    at::Tensor momentum;
    if (has_momentum) {
      auto& state = state_of<torch::optim::SGDParamState>(optimizer, parameter);
      if (!state.momentum_buffer().defined()) {
        step = 1;
        state.momentum_buffer(at::empty_like(gradient));
      }
      momentum = state.momentum_buffer();
    }
    Bucket& bucket = bucket_of(parameter, step, buckets);
    bucket.parameters.push_back(parameter);
    bucket.gradients.push_back(gradient);
    if (has_momentum) bucket.first.push_back(momentum);
  }
  for (auto& [key, bucket] : buckets) {
    at::_fused_sgd_(bucket.parameters, bucket.gradients, bucket.first, options.weight_decay(),
                    options.momentum(), options.lr(), options.dampening(), options.nesterov(),
                    /*maximize=*/false, /*is_first_step=*/std::get<int64_t>(key) == 1);
  }
}

template <class State>
void begin(State& state, const at::Tensor& parameter, bool is_amsgrad) {
  if (!state.exp_avg().defined()) {
    state.step(0);
    state.exp_avg(at::zeros_like(parameter));
    state.exp_avg_sq(at::zeros_like(parameter));
  }
  if (is_amsgrad && !state.max_exp_avg_sq().defined()) {
    state.max_exp_avg_sq(at::zeros_like(parameter));
  }
}

// at::_fused_adam_ or at::_fused_adamw_, with the overload that takes the learning rate as a
// number.
using Operation = void (*)(at::TensorList, at::TensorList, at::TensorList, at::TensorList,
                           at::TensorList, at::TensorList, double, double, double, double, double,
                           bool, bool, const std::optional<at::Tensor>&,
                           const std::optional<at::Tensor>&);

template <class State, class Options>
void step_group(Optimizer& optimizer, const Tensors& parameters, const Options& options,
                Operation operation) {
  Buckets buckets;
  for (const at::Tensor& parameter : parameters) {
    const at::Tensor& gradient = parameter.grad();
    if (!gradient.defined()) continue;
    auto& state = state_of<State>(optimizer, parameter);
    begin(state, parameter, options.amsgrad());
    state.step(state.step() + 1);
    Bucket& bucket = bucket_of(parameter, state.step(), buckets);
    bucket.parameters.push_back(parameter);
    bucket.gradients.push_back(gradient);
    bucket.first.push_back(state.exp_avg());
    bucket.second.push_back(state.exp_avg_sq());
    if (options.amsgrad()) bucket.second_max.push_back(state.max_exp_avg_sq());
  }
  for (auto& [key, bucket] : buckets) {
    const Tensors steps(
        bucket.parameters.size(),
        at::full({}, std::get<int64_t>(key), bucket.parameters[0].options().dtype(at::kFloat)));
    const auto& [beta1, beta2] = options.betas();
    operation(bucket.parameters, bucket.gradients, bucket.first, bucket.second, bucket.second_max,
              steps, options.lr(), beta1, beta2, options.weight_decay(), options.eps(),
              options.amsgrad(), /*maximize=*/false, /*grad_scale=*/{}, /*found_inf=*/{});
  }
}

// Optimizer::step(): calls `step` with the parameters and options of each group.
template <class Options, class StepGroup>
at::Tensor step_groups(std::vector<torch::optim::OptimizerParamGroup>& groups,
                       const Optimizer::LossClosure& closure, StepGroup step) {
  const torch::NoGradGuard no_grad;
  at::Tensor loss = loss_of(closure);
  for (auto& group : groups) {
    step(group.params(), static_cast<const Options&>(group.options()));
  }
  return loss;
}

}  // namespace

at::Tensor FusedSGD::step(LossClosure closure) {
  return step_groups<torch::optim::SGDOptions>(
      param_groups_, closure, [this](const Tensors& parameters, const auto& options) {
        step_group(*this, parameters, options);
      });
}

at::Tensor FusedAdam::step(LossClosure closure) {
  return step_groups<torch::optim::AdamOptions>(
      param_groups_, closure, [this](const Tensors& parameters, const auto& options) {
        step_group<torch::optim::AdamParamState>(*this, parameters, options, at::_fused_adam_);
      });
}

at::Tensor FusedAdamW::step(LossClosure closure) {
  return step_groups<torch::optim::AdamWOptions>(
      param_groups_, closure, [this](const Tensors& parameters, const auto& options) {
        step_group<torch::optim::AdamWParamState>(*this, parameters, options, at::_fused_adamw_);
      });
}

}  // namespace cpprun::optim
