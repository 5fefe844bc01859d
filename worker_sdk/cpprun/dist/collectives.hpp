// Collectives and point to point. Python counterpart: torch.distributed, with its names.
//
// Tensors are dense, on a device that the group has a backend for; those that are not contiguous
// are copied, and results copied back. Every call must be made by all ranks of the group in the
// same order. `src`, `dst` and `peer` are global ranks, as in Python. Without `async_op` the call
// returns when the result is there. A tensor that is written to has a place in memory for each
// element: no expand(). Any thread, but one group's calls from one thread at a time.
//
// Errors (errors.hpp): a wrong argument is a DistArgumentError, a dtype or operation that the
// backend lacks a DistUnsupportedError, both before anything is sent. A lost peer is a
// DistNetworkError, a rank that does not come within the group's timeout a DistTimeoutError; after
// these the group is broken. With TORCH_DISTRIBUTED_DEBUG=DETAIL (or set_debug_checks) on all
// ranks they compare call, shape and dtype first, of all_to_all what each sends and takes, and a
// difference is a DistMismatchError that names both ranks. Without, Gloo may end the program where
// sizes differ.
//
// Gloo: dtypes float16 to float64, bfloat16, (u)int8, int32, int64, bool; complex ones for SUM,
// AVG and everything that only moves, and any other dtype where it only moves (as bytes). Made by
// the SDK of other calls: AVG, all_to_all of lists, all_gather of unequal shapes.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "cpprun/dist/process_group.hpp"
#include "cpprun/dist/work.hpp"

namespace cpprun::dist {

// AVG on gloo is made of SUM and a division (floating point and complex only). BAND, BOR and BXOR
// are gloo's, on integers and bool; PREMUL_SUM is nccl's. On bool, SUM is "or" and PRODUCT "and".
enum class ReduceOp { SUM, AVG, PRODUCT, MIN, MAX, BAND, BOR, BXOR, PREMUL_SUM };
const char* name(ReduceOp op);

struct CallOptions {
  ProcessGroup group = {};  // empty: the default group
  bool async_op = false;
  std::optional<double> premul_factor = {};  // PREMUL_SUM: what this rank multiplies by
};

// `tensor` of `src` on all; the same shape and dtype everywhere.
Work broadcast(at::Tensor tensor, int src, const CallOptions& options = {});
// Element by element over all ranks, the result on all.
Work all_reduce(at::Tensor tensor, ReduceOp op = ReduceOp::SUM, const CallOptions& options = {});
// The result is on `dst`; what other ranks hold afterwards is undefined (gloo: partial sums).
Work reduce(at::Tensor tensor, int dst, ReduceOp op = ReduceOp::SUM,
            const CallOptions& options = {});
// `output` holds one tensor per rank of the group, each of its rank's shape; the same list of
// shapes on all ranks.
Work all_gather(std::vector<at::Tensor> output, at::Tensor input, const CallOptions& options = {});
// `output`: world size times `input`, joined along the first dimension (or stacked).
Work all_gather_into_tensor(at::Tensor output, at::Tensor input, const CallOptions& options = {});
// `output` is empty except on `dst`, where it has one tensor per rank, of the shape of `input`.
Work gather(at::Tensor input, std::vector<at::Tensor> output, int dst = 0,
            const CallOptions& options = {});
// `input` is empty except on `src`, where it has one tensor per rank, of the shape of `output`.
Work scatter(at::Tensor output, std::vector<at::Tensor> input, int src = 0,
             const CallOptions& options = {});
// Rank r gets the reduction of all ranks' input[r]; the same list of shapes on all ranks.
Work reduce_scatter(at::Tensor output, std::vector<at::Tensor> input, ReduceOp op = ReduceOp::SUM,
                    const CallOptions& options = {});
// The same with one tensor, cut into equal parts along its elements.
Work reduce_scatter_tensor(at::Tensor output, at::Tensor input, ReduceOp op = ReduceOp::SUM,
                           const CallOptions& options = {});
// Rank r gets input[r] of each rank; output[i] has the shape of what rank i sends here.
Work all_to_all(std::vector<at::Tensor> output, std::vector<at::Tensor> input,
                const CallOptions& options = {});
// The same with one tensor, cut along its first dimension. Splits are lengths, one per rank, and
// add up to it; empty ones mean equal parts.
Work all_to_all_single(at::Tensor output, at::Tensor input, std::vector<int64_t> output_splits = {},
                       std::vector<int64_t> input_splits = {}, const CallOptions& options = {});

// Blocks until the backend has taken the tensor. Sends and receives of one pair with the same tag
// meet in the order of calls; sizes must agree.
void send(at::Tensor tensor, int dst, int tag = 0, const ProcessGroup& group = {});
// `src` -1: from anybody. Returns the global rank that sent.
int recv(at::Tensor tensor, int src = -1, int tag = 0, const ProcessGroup& group = {});
Work isend(at::Tensor tensor, int dst, int tag = 0, const ProcessGroup& group = {});
Work irecv(at::Tensor tensor, int src = -1, int tag = 0, const ProcessGroup& group = {});
// Starts all, in this order; wait for all. nccl makes one Work of them.
struct P2POp {
  enum class Kind { Send, Recv } kind;
  at::Tensor tensor;
  int peer;  // global rank
  int tag = 0;
};
std::vector<Work> batch_isend_irecv(const std::vector<P2POp>& ops, const ProcessGroup& group = {});

// Returns when all have come. `device_ids` is nccl's: the device to use.
Work barrier(const CallOptions& options = {}, std::vector<int> device_ids = {});
// Rank 0 of the group waits for all, `timeout` at most (default: the group's), and names the
// missing ones in a DistTimeoutError on all ranks that came: "missing rank(s): 1, 3". With
// `wait_all_ranks` all of them, else the first. Goes through the group's store and leaves the group
// usable; any backend. All ranks must be of this SDK (Python's goes over gloo).
void monitored_barrier(const ProcessGroup& group = {},
                       std::optional<std::chrono::milliseconds> timeout = {},
                       bool wait_all_ranks = true);

// Compare call, shape and dtype across ranks before each collective; on all ranks or on none.
void set_debug_checks(bool on);
bool debug_checks();

}  // namespace cpprun::dist
