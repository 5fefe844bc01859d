/// @file
/// Collectives and point-to-point communication. Python counterpart: torch.distributed, same names.
///
/// Tensors are dense and on a device that the group has a backend for. Tensors that are not
/// contiguous are copied, and results copied back. A tensor that a call writes must have its own
/// memory for every element, unlike the result of expand(). `src`, `dst` and `peer` are global
/// ranks. All ranks of the group make the same calls in the same order.
///
/// A call returns when its result is ready, or at once with `async_op`; then wait for the Work
/// (work.hpp). Threads: any, but the calls of one group from one thread at a time.
///
/// Errors (errors.hpp): DistArgumentError for a wrong argument and DistUnsupportedError for a dtype
/// or operation that the backend lacks, both before anything is sent. DistNetworkError for a lost
/// peer and DistTimeoutError for a rank that does not arrive within the group's timeout; afterwards
/// the group is broken and every call throws DistStateError. nccl instead ends the process from
/// c10d's watchdog thread, according to TORCH_NCCL_ASYNC_ERROR_HANDLING.
///
/// With TORCH_DISTRIBUTED_DEBUG=DETAIL (or set_debug_checks) on all ranks, the ranks compare call,
/// shape and dtype before each collective, for all_to_all also what each rank sends and receives; a
/// difference is a DistMismatchError that names both ranks. Without these checks Gloo may end the
/// program if sizes differ.
///
/// Gloo: float16, bfloat16, float32, float64, uint8, int8, int32, int64, bool; complex dtypes for
/// SUM, AVG and calls that do not reduce; any other dtype for calls that do not reduce (as bytes).
/// The SDK emulates AVG, all_to_all of lists, and all_gather of unequal shapes.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <vector>

#include <ATen/core/Tensor.h>

#include "cpprun/dist/process_group.hpp"
#include "cpprun/dist/work.hpp"

namespace cpprun::dist {

/// How values of different ranks are combined. AVG on gloo is SUM and a division, for floating
/// point and complex dtypes only. BAND, BOR and BXOR: gloo only, on integers and bool. PREMUL_SUM:
/// nccl only. On bool, SUM is "or" and PRODUCT is "and". Python counterpart:
/// torch.distributed.ReduceOp.
enum class ReduceOp { SUM, AVG, PRODUCT, MIN, MAX, BAND, BOR, BXOR, PREMUL_SUM };
/// The name of the enumerator, as "SUM".
const char* name(ReduceOp op);

/// What all collectives have in common: Python's arguments `group` and `async_op`.
struct CallOptions {
  ProcessGroup group = {};  ///< empty: the default group
  bool async_op = false;    ///< return at once; the Work shows when the result is ready
  std::optional<double> premul_factor = {};  ///< PREMUL_SUM: this rank's factor
};

/// Copies `tensor` of rank `src` to all ranks, in place; same shape and dtype on all ranks.
Work broadcast(at::Tensor tensor, int src, const CallOptions& options = {});
/// Reduces `tensor` element by element over all ranks, in place; all ranks get the result.
Work all_reduce(at::Tensor tensor, ReduceOp op = ReduceOp::SUM, const CallOptions& options = {});
/// Reduces to rank `dst`, in place; on other ranks `tensor` is undefined afterwards (gloo: partial
/// sums).
Work reduce(at::Tensor tensor, int dst, ReduceOp op = ReduceOp::SUM,
            const CallOptions& options = {});
/// Gathers `input` of all ranks on all ranks. `output`: one tensor per rank, with the shape of that
/// rank's input; the same list of shapes on all ranks. Shapes may differ between ranks.
Work all_gather(std::vector<at::Tensor> output, at::Tensor input, const CallOptions& options = {});
/// The same into one tensor: `output` has world size times the elements of `input`, concatenated
/// along the first dimension or stacked.
Work all_gather_into_tensor(at::Tensor output, at::Tensor input, const CallOptions& options = {});
/// Gathers `input` of all ranks on rank `dst`. `output`: on `dst` one tensor per rank, of the shape
/// of `input`; empty elsewhere.
Work gather(at::Tensor input, std::vector<at::Tensor> output, int dst = 0,
            const CallOptions& options = {});
/// Sends input[r] of rank `src` to rank r. `input`: on `src` one tensor per rank, of the shape of
/// `output`; empty elsewhere.
Work scatter(at::Tensor output, std::vector<at::Tensor> input, int src = 0,
             const CallOptions& options = {});
/// Reduces element by element; rank r gets the reduction of all ranks' input[r] in `output`. The
/// same list of shapes on all ranks.
Work reduce_scatter(at::Tensor output, std::vector<at::Tensor> input, ReduceOp op = ReduceOp::SUM,
                    const CallOptions& options = {});
/// The same with one tensor that is cut into equal parts: `input` has world size times the elements
/// of `output`.
Work reduce_scatter_tensor(at::Tensor output, at::Tensor input, ReduceOp op = ReduceOp::SUM,
                           const CallOptions& options = {});
/// @{
/// Several collectives as one call of the backend, for many small tensors: gloo sends them together
/// (the reductions of reduce_scatter one after the other), nccl in one launch. At least one tensor;
/// all with the dtype and on the device of the first. Otherwise as all_reduce,
/// all_gather_into_tensor and reduce_scatter_tensor of each. Python counterparts:
/// torch.distributed.all_reduce_coalesced, and the latter two calls within `_coalescing_manager`;
/// C++ and Python ranks may meet. gloo has no coalescing of tensors on a GPU:
/// DistUnsupportedError.
Work all_reduce_coalesced(std::vector<at::Tensor> tensors, ReduceOp op = ReduceOp::SUM,
                          const CallOptions& options = {});
Work all_gather_into_tensor_coalesced(std::vector<at::Tensor> outputs,
                                      std::vector<at::Tensor> inputs,
                                      const CallOptions& options = {});
Work reduce_scatter_tensor_coalesced(std::vector<at::Tensor> outputs,
                                     std::vector<at::Tensor> inputs, ReduceOp op = ReduceOp::SUM,
                                     const CallOptions& options = {});
/// @}
/// Sends input[r] to rank r and receives output[i] from rank i. output[i] has the shape of what
/// rank i sends to this rank.
Work all_to_all(std::vector<at::Tensor> output, std::vector<at::Tensor> input,
                const CallOptions& options = {});
/// The same with one tensor, cut along its first dimension. Splits are lengths along it, one per
/// rank; empty splits mean equal parts.
Work all_to_all_single(at::Tensor output, at::Tensor input, std::vector<int64_t> output_splits = {},
                       std::vector<int64_t> input_splits = {}, const CallOptions& options = {});

/// Blocks until the backend has taken the tensor. Receives match sends of the same pair of ranks
/// and the same `tag` (0 or more) in the order of calls; the number of elements must be equal.
void send(at::Tensor tensor, int dst, int tag = 0, const ProcessGroup& group = {});
/// Blocks until the tensor has arrived. `src` -1: from any rank (gloo only). Returns the sender's
/// global rank.
int recv(at::Tensor tensor, int src = -1, int tag = 0, const ProcessGroup& group = {});
/// @{
/// Like send and recv, without blocking. Leave the tensor of isend unchanged and do not read that
/// of irecv until the Work has ended.
Work isend(at::Tensor tensor, int dst, int tag = 0, const ProcessGroup& group = {});
Work irecv(at::Tensor tensor, int src = -1, int tag = 0, const ProcessGroup& group = {});
/// @}
/// One operation of batch_isend_irecv.
struct P2POp {
  /// Send: `tensor` goes to `peer`. Recv: `tensor` is overwritten by what `peer` sends.
  enum class Kind { Send, Recv } kind;  ///< the direction
  /// Read or written until the operation's Work has ended.
  at::Tensor tensor;
  int peer;     ///< global rank
  int tag = 0;  ///< as in send()
};
/// Starts all operations in this order; wait for all Works. nccl returns one Work for all of them,
/// and then all tensors are on the same kind of device.
std::vector<Work> batch_isend_irecv(const std::vector<P2POp>& ops, const ProcessGroup& group = {});

/// Returns when all ranks of the group have called it. `device_ids`: the device to use, nccl only.
Work barrier(const CallOptions& options = {}, std::vector<int> device_ids = {});
/// A barrier that names missing ranks; any backend. Rank 0 of the group waits for all ranks, at
/// most `timeout` (default: the group's), through the group's store. If ranks are missing, all
/// ranks that came throw DistTimeoutError ("missing rank(s): 1, 3"), with `wait_all_ranks` for all
/// missing ranks, else for the first one. Other collectives of the group still work afterwards. A
/// rank that missed barriers, however many, gets this error in its next call, and then is in step:
/// its call after that meets the others' next one. Ranks of Python cannot take part, because theirs
/// uses gloo.
void monitored_barrier(const ProcessGroup& group = {},
                       std::optional<std::chrono::milliseconds> timeout = {},
                       bool wait_all_ranks = true);

/// Switches the comparison before each collective on or off; do it on all ranks.
void set_debug_checks(bool on);
/// True if this process compares calls before each collective.
bool debug_checks();

}  // namespace cpprun::dist
