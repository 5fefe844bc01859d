// all_gather, gather, scatter.
#include <algorithm>

#include "cpprun/dist/collectives.hpp"
#include "cpprun/dist/collectives/call.hpp"
#include "cpprun/dist/collectives/single_calls.hpp"
#include "cpprun/dist/objects/tensor_packing.hpp"

namespace cpprun::dist {
namespace {

std::string shapes(const std::vector<at::Tensor>& list) {
  std::string text;
  for (const at::Tensor& tensor : list) text += ' ' + describe(tensor);
  return text;
}

bool have_equal_shapes(const std::vector<at::Tensor>& list) {
  return std::all_of(list.begin(), list.end(),
                     [&](const at::Tensor& tensor) { return tensor.sizes() == list[0].sizes(); });
}

// Gloo gathers equal sizes only: all ranks pad to the longest input, and each takes the real parts.
Work all_gather_unequal(const Call& call, bool async_op, const std::vector<at::Tensor>& output,
                        const at::Tensor& input, const c10d::AllgatherOptions& native) {
  TensorPacking packing(Payload::Bytes);
  const auto targets = packing.pack_output(output);
  const at::Tensor own = packing.pack_input(input);
  int64_t longest = 0;
  for (const at::Tensor& target : targets) longest = std::max(longest, target.numel());
  at::Tensor padded = at::zeros({longest}, own.options());
  padded.narrow(0, 0, own.numel()).copy_(own);
  at::Tensor all = at::empty({longest * call.size()}, own.options());
  packing.afterwards([targets, all, longest] {
    for (size_t i = 0; i < targets.size(); ++i) {
      targets[i].copy_(all.narrow(0, static_cast<int64_t>(i) * longest, targets[i].numel()));
    }
  });
  return call.start(
      async_op, [&] { return single_all_gather(call.pg(), all, padded, native); },
      packing.finish());
}

// Only the root passes a list.
void check_root_list(const Call& call, bool is_root, const std::vector<at::Tensor>& list,
                     const char* argument, const at::Tensor& like, int root) {
  if (!is_root) {
    if (list.empty()) return;
    call.refuse(std::string(argument) + " must be empty except on rank " + std::to_string(root) +
                ", it has " + std::to_string(list.size()) + " tensors");
  }
  call.check_list(list, argument, like);
  for (const at::Tensor& tensor : list) call.check_same_shape(tensor, argument, like);
}

}  // namespace

Work all_gather(std::vector<at::Tensor> output, at::Tensor input, const CallOptions& options) {
  const Call call("all_gather", options.group);
  call.check(input, "input");
  call.check_list(output, "output", input);
  call.check_written(output, "output");
  call.check_same_shape(output[static_cast<size_t>(call.rank())], "output of this rank", input);
  const auto native = call.options<c10d::AllgatherOptions>();
  call.compare("all_gather" + shapes(output));
  if (!have_equal_shapes(output) && call.is_gloo(input)) {
    return all_gather_unequal(call, options.async_op, output, input, native);
  }
  TensorPacking packing(Payload::Bytes);
  std::vector<std::vector<at::Tensor>> to{packing.pack_output(output)};
  std::vector<at::Tensor> from{packing.pack_input(input)};
  return call.start(
      options.async_op, [&] { return call.pg().allgather(to, from, native); }, packing.finish());
}

Work all_gather_into_tensor(at::Tensor output, at::Tensor input, const CallOptions& options) {
  const Call call("all_gather_into_tensor", options.group);
  call.check(input, "input");
  call.check_same_dtype(output, "output", input);
  call.check_written(output, "output");
  if (output.numel() != input.numel() * call.size()) {
    call.refuse("output is " + describe(output) + " with " + std::to_string(output.numel()) +
                " elements, wanted are " + std::to_string(call.size()) + " times those of input, " +
                describe(input));
  }
  const auto native = call.options<c10d::AllgatherOptions>();
  call.compare("all_gather_into_tensor " + describe(input));
  TensorPacking packing(Payload::Bytes);
  at::Tensor to = packing.pack_output(output);
  at::Tensor from = packing.pack_input(input);
  return call.start(
      options.async_op, [&] { return single_all_gather(call.pg(), to, from, native); },
      packing.finish());
}

Work gather(at::Tensor input, std::vector<at::Tensor> output, int dst, const CallOptions& options) {
  const Call call("gather", options.group);
  call.check(input, "input");
  auto native = call.options<c10d::GatherOptions>();
  native.rootRank = call.group_rank(dst, "dst");
  const bool is_root = call.rank() == native.rootRank;
  check_root_list(call, is_root, output, "output", input, dst);
  call.check_written(output, "output");
  call.compare("gather " + describe(input) + " dst=" + std::to_string(dst));
  TensorPacking packing(Payload::Bytes);
  std::vector<std::vector<at::Tensor>> to;
  if (is_root) to.push_back(packing.pack_output(output));
  std::vector<at::Tensor> from{packing.pack_input(input)};
  return call.start(
      options.async_op, [&] { return call.pg().gather(to, from, native); }, packing.finish());
}

Work scatter(at::Tensor output, std::vector<at::Tensor> input, int src,
             const CallOptions& options) {
  const Call call("scatter", options.group);
  call.check_written(output, "output");
  auto native = call.options<c10d::ScatterOptions>();
  native.rootRank = call.group_rank(src, "src");
  const bool is_root = call.rank() == native.rootRank;
  check_root_list(call, is_root, input, "input", output, src);
  call.compare("scatter " + describe(output) + " src=" + std::to_string(src));
  TensorPacking packing(Payload::Bytes);
  std::vector<at::Tensor> to{packing.pack_output(output)};
  std::vector<std::vector<at::Tensor>> from;
  if (is_root) from.push_back(packing.pack_input(input));
  return call.start(
      options.async_op, [&] { return call.pg().scatter(to, from, native); }, packing.finish());
}

}  // namespace cpprun::dist
