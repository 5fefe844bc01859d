// reduce_scatter and all_to_all.
#include <algorithm>
#include <numeric>

#include "cpprun/dist/collectives.hpp"
#include "cpprun/dist/collectives/call.hpp"
#include "cpprun/dist/collectives/reduction.hpp"
#include "cpprun/dist/collectives/single_calls.hpp"
#include "cpprun/dist/objects/tensor_packing.hpp"

namespace cpprun::dist {
namespace {

std::vector<int64_t> lengths(const std::vector<at::Tensor>& flats) {
  std::vector<int64_t> all;
  for (const at::Tensor& flat : flats) all.push_back(flat.numel());
  return all;
}

std::vector<int64_t> equal_splits(const Call& call, int64_t elements) {
  return std::vector<int64_t>(call.group()->ranks.size(), elements / call.size());
}

// Checks splits along the first dimension and returns them in elements.
std::vector<int64_t> splits_of(const Call& call, const at::Tensor& tensor,
                               const std::vector<int64_t>& splits, const char* argument) {
  const int64_t rows = tensor.dim() == 0 ? 1 : tensor.size(0);
  if (splits.empty()) {
    if (rows % call.size() == 0) return equal_splits(call, tensor.numel());
    call.refuse(std::string(argument) + " is " + describe(tensor) +
                ", its first dimension can't be cut into " + std::to_string(call.size()) +
                " equal parts; give splits");
  }
  const bool has_negative = *std::min_element(splits.begin(), splits.end()) < 0;
  if (splits.size() != call.group()->ranks.size() || has_negative ||
      std::accumulate(splits.begin(), splits.end(), int64_t{0}) != rows) {
    call.refuse(std::string("splits of ") + argument + " are " + c10::str(at::IntArrayRef(splits)) +
                ", wanted are " + std::to_string(call.size()) + " lengths that add up to " +
                std::to_string(rows));
  }
  std::vector<int64_t> elements;
  for (const int64_t split : splits)
    elements.push_back(rows == 0 ? 0 : tensor.numel() / rows * split);
  return elements;
}

// Converts splits to elements of the flat tensor, where a complex number counts as two. Empty for
// equal parts, which the backends compute themselves.
std::vector<int64_t> wire_splits(std::vector<int64_t> splits, bool are_given,
                                 const at::Tensor& tensor, const at::Tensor& flat) {
  if (!are_given) return {};
  if (tensor.numel() == 0) return splits;
  for (int64_t& split : splits) split *= flat.numel() / tensor.numel();
  return splits;
}

void check_own_part(const Call& call, const Exchange& exchange) {
  const auto own = static_cast<size_t>(call.rank());
  const int64_t sent = exchange.sends[own], taken = exchange.takes[own];
  if (sent == taken) return;
  call.refuse("this rank's own part has " + std::to_string(sent) + " element(s) in input and " +
              std::to_string(taken) + " in output; wanted is the same number");
}

void check_equal_parts(const Call& call, const at::Tensor& output, const at::Tensor& input) {
  if (input.numel() == output.numel() * call.size()) return;
  call.refuse("input is " + describe(input) + ", wanted are " + std::to_string(call.size()) +
              " times the elements of output, " + describe(output));
}

// Joins the lists into one buffer, because gloo has no all_to_all of lists.
Work all_to_all_joined(const Call& call, bool async_op, const std::vector<at::Tensor>& output,
                       const std::vector<at::Tensor>& input) {
  TensorPacking packing(Payload::Bytes);
  const auto targets = packing.pack_output(output);
  const auto sources = packing.pack_input(input);
  auto to_splits = lengths(targets);
  auto from_splits = lengths(sources);
  at::Tensor from = at::cat(sources);
  at::Tensor to =
      at::empty({std::accumulate(to_splits.begin(), to_splits.end(), int64_t{0})}, from.options());
  packing.afterwards([targets, to, to_splits] {
    const auto parts = to.split_with_sizes(to_splits);
    for (size_t i = 0; i < targets.size(); ++i) targets[i].copy_(parts[i]);
  });
  const auto native = call.options<c10d::AllToAllOptions>();
  return call.start(
      async_op,
      [&] { return single_all_to_all(call.pg(), to, from, to_splits, from_splits, native); },
      packing.finish());
}

}  // namespace

Work reduce_scatter(at::Tensor output, std::vector<at::Tensor> input, ReduceOp op,
                    const CallOptions& options) {
  const Call call("reduce_scatter", options.group);
  call.check_written(output, "output");
  call.check_list(input, "input", output);
  call.check_same_shape(input[static_cast<size_t>(call.rank())], "input of this rank", output);
  const Reduction reduction = reduction_for(call, op, output, options.premul_factor);
  std::string text = std::string("reduce_scatter ") + name(op);
  for (const at::Tensor& part : input) text += ' ' + describe(part);
  call.compare(text);
  TensorPacking packing(Payload::Numbers);
  std::vector<at::Tensor> to{packing.pack_output(output)};
  std::vector<std::vector<at::Tensor>> from{packing.pack_input(input)};
  divide_afterwards(call, reduction, to[0], packing);
  auto native = call.options<c10d::ReduceScatterOptions>();
  native.reduceOp = reduction.native;
  return call.start_reduce_scatter(
      options.async_op, to[0], [&] { return call.pg().reduce_scatter(to, from, native); },
      packing.finish());
}

Work reduce_scatter_tensor(at::Tensor output, at::Tensor input, ReduceOp op,
                           const CallOptions& options) {
  const Call call("reduce_scatter_tensor", options.group);
  call.check_written(output, "output");
  call.check_same_dtype(input, "input", output);
  check_equal_parts(call, output, input);
  const Reduction reduction = reduction_for(call, op, output, options.premul_factor);
  call.compare(std::string("reduce_scatter_tensor ") + name(op) + ' ' + describe(input));
  TensorPacking packing(Payload::Numbers);
  at::Tensor to = packing.pack_output(output);
  at::Tensor from = packing.pack_input(input);
  divide_afterwards(call, reduction, to, packing);
  auto native = call.options<c10d::ReduceScatterOptions>();
  native.reduceOp = reduction.native;
  return call.start_reduce_scatter(
      options.async_op, to, [&] { return single_reduce_scatter(call.pg(), to, from, native); },
      packing.finish());
}

Work all_to_all(std::vector<at::Tensor> output, std::vector<at::Tensor> input,
                const CallOptions& options) {
  const Call call("all_to_all", options.group);
  if (input.empty()) call.refuse("input is an empty list; wanted is one tensor for each rank");
  call.check(input[0], "input[0]");
  call.check_list(input, "input", input[0]);
  call.check_list(output, "output", input[0]);
  call.check_written(output, "output");
  const auto own = static_cast<size_t>(call.rank());
  call.check_same_shape(output[own], "output of this rank", input[own]);
  call.compare("all_to_all " + dtype_name(input[0].scalar_type()),
               {.sends = lengths(input), .takes = lengths(output)});
  if (call.is_gloo(input[0])) return all_to_all_joined(call, options.async_op, output, input);
  TensorPacking packing(Payload::Bytes);
  auto to = packing.pack_output(output);
  auto from = packing.pack_input(input);
  const auto native = call.options<c10d::AllToAllOptions>();
  return call.start(
      options.async_op, [&] { return call.pg().alltoall(to, from, native); }, packing.finish());
}

Work all_to_all_single(at::Tensor output, at::Tensor input, std::vector<int64_t> output_splits,
                       std::vector<int64_t> input_splits, const CallOptions& options) {
  const Call call("all_to_all_single", options.group);
  call.check(input, "input");
  call.check_same_dtype(output, "output", input);
  call.check_written(output, "output");
  const Exchange exchange{.sends = splits_of(call, input, input_splits, "input"),
                          .takes = splits_of(call, output, output_splits, "output")};
  check_own_part(call, exchange);
  call.compare("all_to_all_single " + dtype_name(input.scalar_type()), exchange);
  TensorPacking packing(Payload::Bytes);
  at::Tensor to = packing.pack_output(output);
  at::Tensor from = packing.pack_input(input);
  auto to_splits = wire_splits(exchange.takes, !output_splits.empty(), output, to);
  auto from_splits = wire_splits(exchange.sends, !input_splits.empty(), input, from);
  const auto native = call.options<c10d::AllToAllOptions>();
  return call.start(
      options.async_op,
      [&] { return single_all_to_all(call.pg(), to, from, to_splits, from_splits, native); },
      packing.finish());
}

}  // namespace cpprun::dist
