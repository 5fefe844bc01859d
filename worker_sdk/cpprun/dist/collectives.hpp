// Collectives and point to point. Python counterpart: torch.distributed, with its names.
//
// Tensors are dense and contiguous, on a device that the group has a backend for. Every call must
// be made by all ranks of the group in the same order. `src`, `dst` and `peer` are global ranks, as
// in Python. Without `async_op` the call returns when the result is there. Errors: errors.hpp.
// With TORCH_DISTRIBUTED_DEBUG=DETAIL (or set_debug_checks) ranks compare call, shape and dtype
// first, and a difference is a DistMismatchError that names both ranks.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "cpprun/dist/process_group.hpp"
#include "cpprun/dist/work.hpp"

namespace cpprun::dist {

// AVG on gloo is made of SUM and a division (floating point only). PREMUL_SUM is nccl's.
enum class ReduceOp { SUM, AVG, PRODUCT, MIN, MAX, BAND, BOR, BXOR, PREMUL_SUM };
const char* name(ReduceOp op);

struct CallOptions {
  ProcessGroup group;  // empty: the default group
  bool async_op = false;
};

Work broadcast(at::Tensor tensor, int src, const CallOptions& options = {});
Work all_reduce(at::Tensor tensor, ReduceOp op = ReduceOp::SUM, const CallOptions& options = {});
// The result is on `dst`; what other ranks hold afterwards is undefined (gloo: partial sums).
Work reduce(at::Tensor tensor, int dst, ReduceOp op = ReduceOp::SUM,
            const CallOptions& options = {});
// `output` holds one tensor per rank of the group, each of its rank's shape.
Work all_gather(std::vector<at::Tensor> output, at::Tensor input, const CallOptions& options = {});
// `output`: world size times `input`, joined along the first dimension (or stacked).
Work all_gather_into_tensor(at::Tensor output, at::Tensor input, const CallOptions& options = {});
// `output` is empty except on `dst`.
Work gather(at::Tensor input, std::vector<at::Tensor> output, int dst = 0,
            const CallOptions& options = {});
// `input` is empty except on `src`.
Work scatter(at::Tensor output, std::vector<at::Tensor> input, int src = 0,
             const CallOptions& options = {});
Work reduce_scatter(at::Tensor output, std::vector<at::Tensor> input, ReduceOp op = ReduceOp::SUM,
                    const CallOptions& options = {});
Work reduce_scatter_tensor(at::Tensor output, at::Tensor input, ReduceOp op = ReduceOp::SUM,
                           const CallOptions& options = {});
Work all_to_all(std::vector<at::Tensor> output, std::vector<at::Tensor> input,
                const CallOptions& options = {});
// Empty splits: equal parts.
Work all_to_all_single(at::Tensor output, at::Tensor input, std::vector<int64_t> output_splits = {},
                       std::vector<int64_t> input_splits = {}, const CallOptions& options = {});

void send(at::Tensor tensor, int dst, int tag = 0, const ProcessGroup& group = {});
// `src` -1: from anybody. Returns the global rank that sent.
int recv(at::Tensor tensor, int src = -1, int tag = 0, const ProcessGroup& group = {});
Work isend(at::Tensor tensor, int dst, int tag = 0, const ProcessGroup& group = {});
Work irecv(at::Tensor tensor, int src = -1, int tag = 0, const ProcessGroup& group = {});
struct P2POp {
  enum class Kind { Send, Recv } kind;
  at::Tensor tensor;
  int peer;  // global rank
  int tag = 0;
};
std::vector<Work> batch_isend_irecv(const std::vector<P2POp>& ops, const ProcessGroup& group = {});

Work barrier(const CallOptions& options = {}, std::vector<int> device_ids = {});
// Rank 0 waits for all and names the missing ones: "missing rank(s): 1". With wait_all_ranks all of
// them, else the first. gloo only.
void monitored_barrier(const ProcessGroup& group = {},
                       std::optional<std::chrono::milliseconds> timeout = {},
                       bool wait_all_ranks = true);

// Compare call, shape and dtype across ranks before each collective.
void set_debug_checks(bool on);
bool debug_checks();

}  // namespace cpprun::dist
