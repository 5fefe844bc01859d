// The order of sums in backward is Python's, because another one gives other last bits.
#include "cpprun/dist/nn/functional.hpp"

#include <ATen/Functions.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/custom_class.h>

#include <utility>

namespace cpprun::dist::nn::functional {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::Function;
using torch::autograd::variable_list;

// What backward needs besides tensors.
struct CallArguments : torch::CustomClassHolder {
  ProcessGroup group = {};
  ReduceOp op = ReduceOp::SUM;
  std::vector<int64_t> output_splits = {}, input_splits = {};
  std::vector<at::Tensor> outputs = {};  // to write; until forward ends
  std::vector<std::vector<int64_t>> input_shapes = {};
};
using Arguments = c10::intrusive_ptr<CallArguments>;

constexpr const char* kSaved = "arguments";

void keep(AutogradContext* context, const Arguments& arguments) {
  context->saved_data[kSaved] = c10::IValue::make_capsule(arguments);
}

CallArguments& kept(AutogradContext* context) {
  return static_cast<CallArguments&>(*context->saved_data[kSaved].toCapsule());
}

Arguments arguments_of(const ProcessGroup& group, ReduceOp op = ReduceOp::SUM) {
  auto arguments = c10::make_intrusive<CallArguments>();
  arguments->group = group;
  arguments->op = op;
  return arguments;
}

bool uses_nccl(const at::Tensor& tensor, const ProcessGroup& group) {
  return tensor.is_cuda() && get_backend(group).find("nccl") != std::string::npos;
}

std::vector<at::Tensor> empty_like_each(const std::vector<at::Tensor>& tensors) {
  std::vector<at::Tensor> all;
  for (const at::Tensor& tensor : tensors) all.push_back(at::empty_like(tensor));
  return all;
}

// The gradients of the inputs, then nothing for the arguments.
variable_list with_none(variable_list gradients) {
  gradients.emplace_back();
  return gradients;
}

struct AllGather : Function<AllGather> {
  static variable_list forward(AutogradContext* context, const at::Tensor& tensor,
                               const Arguments& arguments) {
    keep(context, arguments);
    const at::Tensor own = tensor.contiguous();
    std::vector<at::Tensor> all;
    for (int i = 0; i < get_world_size(arguments->group); ++i) all.push_back(at::empty_like(own));
    dist::all_gather(all, own, {.group = arguments->group});
    return all;
  }
  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const ProcessGroup group = kept(context).group;
    if (uses_nccl(gradients[0], group)) {
      const auto own = static_cast<size_t>(get_rank(group));
      return {reduce_scatter(at::empty_like(gradients[own]), gradients, ReduceOp::SUM, group), {}};
    }
    return {at::stack(all_to_all(empty_like_each(gradients), gradients, group)).sum(0), {}};
  }
};

struct AllReduce : Function<AllReduce> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& tensor,
                            const Arguments& arguments) {
    keep(context, arguments);
    at::Tensor result = tensor.clone(at::MemoryFormat::Contiguous);
    dist::all_reduce(result, arguments->op, {.group = arguments->group});
    return result;
  }
  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const CallArguments& arguments = kept(context);
    return {all_reduce(gradients[0], arguments.op, arguments.group), {}};
  }
};

struct ReduceScatter : Function<ReduceScatter> {
  static at::Tensor forward(AutogradContext* context, at::TensorList inputs,
                            const Arguments& arguments) {
    keep(context, arguments);
    const at::Tensor output = std::exchange(arguments->outputs, {}).at(0);
    dist::reduce_scatter(output, inputs.vec(), arguments->op, {.group = arguments->group});
    return output;
  }
  static variable_list backward(AutogradContext* context, variable_list gradients) {
    return with_none(all_gather(gradients[0], kept(context).group));
  }
};

struct AllToAll : Function<AllToAll> {
  static variable_list forward(AutogradContext* context, at::TensorList inputs,
                               const Arguments& arguments) {
    keep(context, arguments);
    for (const at::Tensor& input : inputs) arguments->input_shapes.push_back(input.sizes().vec());
    std::vector<at::Tensor> outputs = std::exchange(arguments->outputs, {});
    dist::all_to_all(outputs, inputs.vec(), {.group = arguments->group});
    return outputs;
  }
  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const CallArguments& arguments = kept(context);
    std::vector<at::Tensor> back;
    for (const auto& shape : arguments.input_shapes) {
      back.push_back(at::empty(shape, gradients[0].options()));
    }
    return with_none(all_to_all(back, gradients, arguments.group));
  }
};

struct AllToAllSingle : Function<AllToAllSingle> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& input,
                            const Arguments& arguments) {
    keep(context, arguments);
    arguments->input_shapes = {input.sizes().vec()};
    const at::Tensor output = std::exchange(arguments->outputs, {}).at(0);
    dist::all_to_all_single(output, input, arguments->output_splits, arguments->input_splits,
                            {.group = arguments->group});
    return output;
  }
  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const CallArguments& arguments = kept(context);
    const at::Tensor back = at::empty(arguments.input_shapes[0], gradients[0].options());
    return {all_to_all_single(back, gradients[0].contiguous(), arguments.input_splits,
                              arguments.output_splits, arguments.group),
            {}};
  }
};

}  // namespace

std::vector<at::Tensor> all_gather(const at::Tensor& tensor, const ProcessGroup& group) {
  return AllGather::apply(tensor, arguments_of(group));
}

at::Tensor all_reduce(const at::Tensor& tensor, ReduceOp op, const ProcessGroup& group) {
  return AllReduce::apply(tensor, arguments_of(group, op));
}

at::Tensor reduce_scatter(const at::Tensor& output, const std::vector<at::Tensor>& input_list,
                          ReduceOp op, const ProcessGroup& group) {
  const Arguments arguments = arguments_of(group, op);
  arguments->outputs = {output};
  return ReduceScatter::apply(at::TensorList(input_list), arguments);
}

std::vector<at::Tensor> all_to_all(const std::vector<at::Tensor>& output_tensor_list,
                                   const std::vector<at::Tensor>& input_tensor_list,
                                   const ProcessGroup& group) {
  const Arguments arguments = arguments_of(group);
  arguments->outputs = output_tensor_list;
  return AllToAll::apply(at::TensorList(input_tensor_list), arguments);
}

at::Tensor all_to_all_single(const at::Tensor& output, const at::Tensor& input,
                             const std::vector<int64_t>& output_split_sizes,
                             const std::vector<int64_t>& input_split_sizes,
                             const ProcessGroup& group) {
  const Arguments arguments = arguments_of(group);
  arguments->outputs = {output};
  arguments->output_splits = output_split_sizes;
  arguments->input_splits = input_split_sizes;
  return AllToAllSingle::apply(input, arguments);
}

}  // namespace cpprun::dist::nn::functional
