/// @file
/// Collectives through which gradients flow. Python counterpart: torch.distributed.nn.functional,
/// with its names and, on gloo, its bits.
///
///     auto all = dist::nn::functional::all_gather(own);   // other ranks' losses reach `own` too
///     loss_of(torch::cat(all)).backward();
///
/// Each call is a collective, and so is its backward: all ranks call backward, even a rank whose
/// loss does not need the result. Gradients add up over ranks; DistributedDataParallel then
/// averages those of the parameters. A second backward through the gradients works too. Errors: as
/// in collectives.hpp; within backward they arrive as LibTorch's exceptions. One thread at a time
/// for each group.
#pragma once

#include <cstdint>
#include <vector>

#include <ATen/core/Tensor.h>

#include "cpprun/dist/collectives.hpp"
#include "cpprun/dist/process_group.hpp"

namespace cpprun::dist::nn::functional {

/// The tensors of all ranks, by rank; all have the same shape. Backward: the sum over ranks of what
/// they ask of this rank's tensor.
std::vector<at::Tensor> all_gather(const at::Tensor& tensor, const ProcessGroup& group = {});
/// The reduction of all ranks' tensors; `tensor` itself stays unchanged. Backward: the same
/// reduction of the gradients.
at::Tensor all_reduce(const at::Tensor& tensor, ReduceOp op = ReduceOp::SUM,
                      const ProcessGroup& group = {});
/// Writes the reduction of all ranks' input_list[this rank] to `output` and returns it. Backward:
/// all_gather of the gradients.
at::Tensor reduce_scatter(const at::Tensor& output, const std::vector<at::Tensor>& input_list,
                          ReduceOp op = ReduceOp::SUM, const ProcessGroup& group = {});
/// Sends input_tensor_list[r] to rank r, receives output_tensor_list[i] from rank i and returns
/// them. Backward: the same in the other direction.
std::vector<at::Tensor> all_to_all(const std::vector<at::Tensor>& output_tensor_list,
                                   const std::vector<at::Tensor>& input_tensor_list,
                                   const ProcessGroup& group = {});
/// The same with one tensor, cut along its first dimension. Splits are lengths along it, one per
/// rank; empty splits mean equal parts.
at::Tensor all_to_all_single(const at::Tensor& output, const at::Tensor& input,
                             const std::vector<int64_t>& output_split_sizes = {},
                             const std::vector<int64_t>& input_split_sizes = {},
                             const ProcessGroup& group = {});

}  // namespace cpprun::dist::nn::functional
