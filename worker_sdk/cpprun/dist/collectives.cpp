// broadcast, all_reduce, reduce, barrier: collectives of one tensor, in place.
#include "cpprun/dist/collectives.hpp"

#include "cpprun/dist/collectives/call.hpp"
#include "cpprun/dist/collectives/reduction.hpp"
#include "cpprun/dist/objects/tensor_packing.hpp"

namespace cpprun::dist {

Work broadcast(at::Tensor tensor, int src, const CallOptions& options) {
  const Call call("broadcast", options.group);
  call.check_written(tensor, "tensor");
  auto native = call.options<c10d::BroadcastOptions>();
  native.rootRank = call.group_rank(src, "src");
  call.compare("broadcast " + describe(tensor) + " src=" + std::to_string(src));
  TensorPacking packing(Payload::Bytes);
  std::vector<at::Tensor> flat{packing.pack_output(tensor)};
  return call.start(
      options.async_op, [&] { return call.pg().broadcast(flat, native); }, packing.finish());
}

Work all_reduce(at::Tensor tensor, ReduceOp op, const CallOptions& options) {
  const Call call("all_reduce", options.group);
  call.check_written(tensor, "tensor");
  const Reduction reduction = reduction_for(call, op, tensor, options.premul_factor);
  auto native = call.options<c10d::AllreduceOptions>();
  native.reduceOp = reduction.native;
  call.compare(std::string("all_reduce ") + name(op) + ' ' + describe(tensor));
  TensorPacking packing(Payload::Numbers);
  std::vector<at::Tensor> flat{packing.pack_output(tensor)};
  divide_afterwards(call, reduction, flat[0], packing);
  return call.start(
      options.async_op, [&] { return call.pg().allreduce(flat, native); }, packing.finish());
}

Work reduce(at::Tensor tensor, int dst, ReduceOp op, const CallOptions& options) {
  const Call call("reduce", options.group);
  call.check_written(tensor, "tensor");
  const Reduction reduction = reduction_for(call, op, tensor, options.premul_factor);
  auto native = call.options<c10d::ReduceOptions>();
  native.reduceOp = reduction.native;
  native.rootRank = call.group_rank(dst, "dst");
  call.compare(std::string("reduce ") + name(op) + ' ' + describe(tensor) +
               " dst=" + std::to_string(dst));
  TensorPacking packing(Payload::Numbers);
  std::vector<at::Tensor> flat{packing.pack_output(tensor)};
  if (call.rank() == native.rootRank) divide_afterwards(call, reduction, flat[0], packing);
  return call.start(
      options.async_op, [&] { return call.pg().reduce(flat, native); }, packing.finish());
}

Work barrier(const CallOptions& options, std::vector<int> device_ids) {
  const Call call("barrier", options.group);
  auto native = call.options<c10d::BarrierOptions>();
  native.device_ids.assign(device_ids.begin(), device_ids.end());
  // Without it nccl guesses: the rank modulo the number of GPUs.
  const bool has_nccl = call.group()->backend.find("nccl") != std::string::npos;
  if (device_ids.empty() && has_nccl) native.device = call.group()->device;
  call.compare("barrier");
  return call.start(options.async_op, [&] { return call.pg().barrier(native); });
}

}  // namespace cpprun::dist
