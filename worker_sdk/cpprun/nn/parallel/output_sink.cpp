#include "cpprun/nn/parallel/output_sink.hpp"

#include <torch/csrc/autograd/custom_function.h>
#include <torch/custom_class.h>

namespace cpprun::nn::parallel {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

struct Callback : torch::CustomClassHolder {
  explicit Callback(std::function<void()> f) : call(std::move(f)) {}
  std::function<void()> call;
};

struct OutputSink : torch::autograd::Function<OutputSink> {
  static variable_list forward(AutogradContext* context, at::TensorList inputs,
                               const c10::intrusive_ptr<Callback>& callback) {
    context->set_materialize_grads(false);
    context->saved_data["callback"] = c10::IValue::make_capsule(callback);
    variable_list outputs;
    for (const at::Tensor& input : inputs) outputs.push_back(input.clone());
    return outputs;
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const auto holder = context->saved_data["callback"].toCapsule();
    static_cast<Callback&>(*holder).call();
    gradients.emplace_back();  // no gradient for the callback argument
    return gradients;
  }
};

}  // namespace

void pass_through_sink(const std::vector<at::Tensor*>& outputs, std::function<void()> on_backward) {
  std::vector<at::Tensor*> with_graph;
  variable_list inputs;
  for (at::Tensor* output : outputs) {
    if (output->grad_fn() == nullptr) continue;
    with_graph.push_back(output);
    inputs.push_back(*output);
  }
  if (inputs.empty()) return;
  const auto callback = c10::make_intrusive<Callback>(std::move(on_backward));
  const variable_list results = OutputSink::apply(at::TensorList(inputs), callback);
  for (size_t i = 0; i < results.size(); ++i) *with_graph[i] = results[i];
}

}  // namespace cpprun::nn::parallel
