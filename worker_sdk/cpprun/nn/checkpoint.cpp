#include "cpprun/nn/checkpoint.hpp"

#include <ATen/Context.h>
#include <ATen/Functions.h>
#include <ATen/autocast_mode.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/custom_class.h>

#include <algorithm>
#include <mutex>
#include <stdexcept>
#include <string>
#include <utility>

namespace cpprun::utils::checkpoint {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// The states of the random number generators of the CPU and of some GPUs.
class GeneratorStates {
 public:
  static GeneratorStates of(const std::vector<at::Device>& devices) {
    GeneratorStates all;
    for (const at::Device& device : devices) {
      at::Generator generator = at::globalContext().defaultGenerator(device);
      const std::lock_guard lock(generator.mutex());
      all.states_.emplace_back(device, generator.get_state());
    }
    return all;
  }
  void restore() const {
    for (const auto& [device, state] : states_) {
      at::Generator generator = at::globalContext().defaultGenerator(device);
      const std::lock_guard lock(generator.mutex());
      generator.set_state(state);
    }
  }

 private:
  std::vector<std::pair<at::Device, at::Tensor>> states_;
};

std::vector<at::Device> devices_of(const variable_list& tensors) {
  std::vector<at::Device> devices{at::Device(at::kCPU)};
  for (const at::Tensor& tensor : tensors) {
    if (!tensor.defined() || !tensor.is_cuda()) continue;
    if (std::find(devices.begin(), devices.end(), tensor.device()) == devices.end()) {
      devices.push_back(tensor.device());
    }
  }
  return devices;
}

// Autocast of the calling thread; backward may run in another one.
class AutocastState {
 public:
  static AutocastState now() {
    AutocastState state;
    for (Entry& entry : state.entries_) {
      entry.is_enabled = at::autocast::is_autocast_enabled(entry.type);
      entry.dtype = at::autocast::get_autocast_dtype(entry.type);
    }
    state.uses_cache_ = at::autocast::is_autocast_cache_enabled();
    return state;
  }
  void restore() const {
    for (const Entry& entry : entries_) {
      at::autocast::set_autocast_enabled(entry.type, entry.is_enabled);
      at::autocast::set_autocast_dtype(entry.type, entry.dtype);
    }
    at::autocast::set_autocast_cache_enabled(uses_cache_);
  }

 private:
  struct Entry {
    at::DeviceType type;
    bool is_enabled = false;
    at::ScalarType dtype = at::kFloat;
  };
  std::vector<Entry> entries_{{at::kCPU}, {at::kCUDA}};
  bool uses_cache_ = true;
};

// What the second computation needs of the first.
struct Segment : torch::CustomClassHolder {
  Function function;
  CheckpointOptions options;
  std::vector<at::Device> devices = {};
  GeneratorStates generators = {};
  AutocastState autocast = {};
};

// Computes the segment again as it was the first time, and puts everything back.
variable_list compute_again(const Segment& segment, const variable_list& inputs) {
  const AutocastState autocast = AutocastState::now();
  const auto devices =
      segment.options.preserve_rng_state ? segment.devices : std::vector<at::Device>();
  const GeneratorStates generators = GeneratorStates::of(devices);
  struct PutBack {
    const AutocastState& autocast;
    const GeneratorStates& generators;
    ~PutBack() {
      // The last one out drops the cached casts of weights, which the optimizer will change.
      if (at::autocast::decrement_nesting() == 0) at::autocast::clear_cache();
      autocast.restore();
      generators.restore();
    }
  } const put_back{autocast, generators};
  at::autocast::increment_nesting();
  segment.autocast.restore();
  segment.generators.restore();
  const at::AutoGradMode with_gradients(true);
  return segment.function(inputs);
}

struct Checkpoint : torch::autograd::Function<Checkpoint> {
  // `anchor` requires a gradient, so that backward comes here even if no input requires one.
  static variable_list forward(AutogradContext* context, [[maybe_unused]] const at::Tensor& anchor,
                               at::TensorList inputs, const c10::intrusive_ptr<Segment>& segment) {
    const variable_list all = inputs.vec();
    segment->autocast = AutocastState::now();
    if (segment->options.preserve_rng_state) {
      segment->devices = devices_of(all);
      segment->generators = GeneratorStates::of(segment->devices);
    }
    context->save_for_backward(all);
    context->saved_data["segment"] = c10::IValue::make_capsule(segment);
    variable_list outputs = segment->function(all);
    // An input that is passed on would not be an output of this node.
    for (at::Tensor& output : outputs) {
      if (output.defined()) output = output.detach();
    }
    return outputs;
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const auto holder = context->saved_data["segment"].toCapsule();
    const auto& segment = static_cast<const Segment&>(*holder);
    variable_list inputs;
    for (const at::Tensor& saved : context->get_saved_variables()) {
      inputs.push_back(saved.defined() ? saved.detach() : saved);
      if (saved.defined()) inputs.back().set_requires_grad(saved.requires_grad());
    }
    const variable_list outputs = compute_again(segment, inputs);
    variable_list roots, seeds;
    for (size_t i = 0; i < outputs.size(); ++i) {
      if (!outputs[i].defined() || !outputs[i].requires_grad()) continue;
      roots.push_back(outputs[i]);
      seeds.push_back(gradients.at(i));
    }
    if (!roots.empty()) torch::autograd::backward(roots, seeds);
    variable_list result{{}};  // of the anchor
    for (const at::Tensor& input : inputs) {
      result.push_back(input.defined() ? input.grad() : at::Tensor());
    }
    result.emplace_back();  // of the segment
    return result;
  }
};

using FunctionIterator = std::vector<TensorFunction>::const_iterator;

TensorFunction one_after_the_other(FunctionIterator begin, FunctionIterator end) {
  return [part = std::vector<TensorFunction>(begin, end)](const at::Tensor& input) {
    at::Tensor result = input;
    for (const TensorFunction& function : part) result = function(result);
    return result;
  };
}

}  // namespace

std::vector<at::Tensor> checkpoint(Function function, const std::vector<at::Tensor>& inputs,
                                   CheckpointOptions options) {
  if (!at::GradMode::is_enabled()) return function(inputs);
  auto segment = c10::make_intrusive<Segment>();
  segment->function = std::move(function);
  segment->options = options;
  const at::Tensor anchor = at::zeros({0}).set_requires_grad(true);
  return Checkpoint::apply(anchor, at::TensorList(inputs), segment);
}

at::Tensor checkpoint(TensorFunction function, const at::Tensor& input, CheckpointOptions options) {
  const auto on_lists = [function = std::move(function)](const std::vector<at::Tensor>& inputs) {
    return std::vector<at::Tensor>{function(inputs[0])};
  };
  return checkpoint(Function(on_lists), std::vector<at::Tensor>{input}, options)[0];
}

at::Tensor checkpoint_sequential(const std::vector<TensorFunction>& functions, int64_t segments,
                                 const at::Tensor& input, CheckpointOptions options) {
  const auto count = static_cast<int64_t>(functions.size());
  if (segments < 1 || segments > count) {
    throw std::invalid_argument("checkpoint_sequential: segments is " + std::to_string(segments) +
                                ", wanted is 1 to " + std::to_string(count) +
                                ", the number of functions");
  }
  const int64_t length = count / segments;
  auto begin = functions.begin();
  at::Tensor result = input;
  for (int64_t segment = 0; segment + 1 < segments; ++segment, begin += length) {
    result = checkpoint(one_after_the_other(begin, begin + length), result, options);
  }
  return one_after_the_other(begin, functions.end())(result);
}

at::Tensor checkpoint_sequential(const torch::nn::Sequential& functions, int64_t segments,
                                 const at::Tensor& input, CheckpointOptions options) {
  std::vector<TensorFunction> calls;
  for (const torch::nn::AnyModule& module : *functions) {
    // A copy that is not const, because forward() is not.
    calls.emplace_back([module = torch::nn::AnyModule(module)](const at::Tensor& x) mutable {
      return module.forward<at::Tensor>(x);
    });
  }
  return checkpoint_sequential(calls, segments, input, options);
}

}  // namespace cpprun::utils::checkpoint
