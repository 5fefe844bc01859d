// all_reduce_coalesced, all_gather_into_tensor_coalesced, reduce_scatter_tensor_coalesced: one call
// of the backend for several tensors.
#include "cpprun/dist/collectives.hpp"
#include "cpprun/dist/collectives/call.hpp"
#include "cpprun/dist/collectives/reduction.hpp"
#include "cpprun/dist/collectives/single_calls.hpp"
#include "cpprun/dist/objects/tensor_packing.hpp"

namespace cpprun::dist {
namespace {

std::string at_index(const char* argument, size_t index) {
  return argument + ("[" + std::to_string(index) + "]");
}

// The backends join the tensors to one buffer: all must have one dtype and device.
void check_alike(const Call& call, const std::vector<at::Tensor>& list, const char* argument) {
  if (list.empty()) call.refuse(std::string(argument) + " is an empty list");
  call.check(list[0], at_index(argument, 0).c_str());
  for (size_t i = 1; i < list.size(); ++i) {
    call.check_same_dtype(list[i], at_index(argument, i).c_str(), list[0]);
  }
}

// whole[i] has world size times the elements of part[i].
void check_pairs(const Call& call, const std::vector<at::Tensor>& whole, const char* whole_name,
                 const std::vector<at::Tensor>& part, const char* part_name) {
  if (whole.size() != part.size()) {
    call.refuse(std::string(whole_name) + " has " + std::to_string(whole.size()) + " tensors, " +
                part_name + " has " + std::to_string(part.size()) + "; wanted is the same number");
  }
  call.check_same_dtype(whole[0], at_index(whole_name, 0).c_str(), part[0]);
  for (size_t i = 0; i < whole.size(); ++i) {
    if (whole[i].numel() == part[i].numel() * call.size()) continue;
    call.refuse(at_index(whole_name, i) + " is " + describe(whole[i]) + ", wanted are " +
                std::to_string(call.size()) + " times the elements of " + at_index(part_name, i) +
                ", " + describe(part[i]));
  }
}

std::string described(std::string text, const std::vector<at::Tensor>& list) {
  for (const at::Tensor& tensor : list) text += ' ' + describe(tensor);
  return text;
}

}  // namespace

Work all_reduce_coalesced(std::vector<at::Tensor> tensors, ReduceOp op,
                          const CallOptions& options) {
  const Call call("all_reduce_coalesced", options.group);
  check_alike(call, tensors, "tensors");
  call.check_written(tensors, "tensors");
  const Reduction reduction = reduction_for(call, op, tensors[0], options.premul_factor);
  auto native = call.options<c10d::AllreduceCoalescedOptions>();
  native.reduceOp = reduction.native;
  call.compare(described(std::string("all_reduce_coalesced ") + name(op), tensors));
  TensorPacking packing(Payload::Numbers);
  std::vector<at::Tensor> flat = packing.pack_output(tensors);
  for (const at::Tensor& each : flat) divide_afterwards(call, reduction, each, packing);
  return call.start(
      options.async_op, [&] { return call.pg().allreduce_coalesced(flat, native); },
      packing.finish());
}

Work all_gather_into_tensor_coalesced(std::vector<at::Tensor> outputs,
                                      std::vector<at::Tensor> inputs, const CallOptions& options) {
  const Call call("all_gather_into_tensor_coalesced", options.group);
  check_alike(call, inputs, "inputs");
  check_alike(call, outputs, "outputs");
  call.check_written(outputs, "outputs");
  check_pairs(call, outputs, "outputs", inputs, "inputs");
  const auto native = call.options<c10d::AllgatherOptions>();
  call.compare(described("all_gather_into_tensor_coalesced", inputs));
  TensorPacking packing(Payload::Bytes);
  std::vector<at::Tensor> to = packing.pack_output(outputs);
  std::vector<at::Tensor> from = packing.pack_input(inputs);
  return call.start(
      options.async_op, [&] { return single_all_gathers(call.pg(), to, from, native); },
      packing.finish());
}

Work reduce_scatter_tensor_coalesced(std::vector<at::Tensor> outputs,
                                     std::vector<at::Tensor> inputs, ReduceOp op,
                                     const CallOptions& options) {
  const Call call("reduce_scatter_tensor_coalesced", options.group);
  check_alike(call, outputs, "outputs");
  check_alike(call, inputs, "inputs");
  call.check_written(outputs, "outputs");
  check_pairs(call, inputs, "inputs", outputs, "outputs");
  const Reduction reduction = reduction_for(call, op, outputs[0], options.premul_factor);
  auto native = call.options<c10d::ReduceScatterOptions>();
  native.reduceOp = reduction.native;
  call.compare(described(std::string("reduce_scatter_tensor_coalesced ") + name(op), inputs));
  TensorPacking packing(Payload::Numbers);
  std::vector<at::Tensor> to = packing.pack_output(outputs);
  std::vector<at::Tensor> from = packing.pack_input(inputs);
  for (const at::Tensor& each : to) divide_afterwards(call, reduction, each, packing);
  return call.start_reduce_scatter(
      options.async_op, to[0], [&] { return single_reduce_scatters(call.pg(), to, from, native); },
      packing.finish());
}

}  // namespace cpprun::dist
