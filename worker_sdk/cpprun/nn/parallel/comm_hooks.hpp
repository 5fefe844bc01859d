/// @file
/// Communication hooks: what DistributedDataParallel does with a bucket of gradients instead of
/// averaging it. Python counterpart: torch.distributed.algorithms.ddp_comm_hooks.
///
///     ddp.register_comm_hook(nn::parallel::fp16_compress_hook());
///     ddp.register_comm_hook({"half", [](GradBucket& bucket) -> HookResult {
///       auto sum = bucket.buffer().div(bucket.world_size());
///       auto work = dist::all_reduce(sum, dist::ReduceOp::SUM, {.async_op = true});
///       return [=]() mutable { work.wait(); return sum; };   // runs when all buckets have started
///     }});
///
/// A hook divides by the world size itself. Hooks run on the thread of backward, without gradients.
/// Register one hook per DistributedDataParallel, before the first backward.
#pragma once

#include <concepts>
#include <cstdint>
#include <functional>
#include <future>
#include <memory>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "cpprun/dist/process_group.hpp"
#include "cpprun/dist/stateful.hpp"

namespace c10d {
class GradBucket;
}

namespace cpprun::nn::parallel {

/// One bucket of gradients; valid while the hook runs. Its tensors may be kept. Python counterpart:
/// torch.distributed.GradBucket.
class GradBucket {
 public:
  GradBucket(c10d::GradBucket& bucket, dist::ProcessGroup group)
      : bucket_(&bucket), group_(std::move(group)) {}
  size_t index() const;
  at::Tensor buffer() const;  ///< all gradients, flattened; one dimension
  void set_buffer(at::Tensor buffer);
  /// Views into buffer(), each of its parameter's shape.
  std::vector<at::Tensor> gradients() const;
  std::vector<at::Tensor> parameters() const;
  bool is_last() const;                                       ///< the last bucket of this backward
  const dist::ProcessGroup& group() const { return group_; }  ///< of the DDP module
  int world_size() const { return group_.size(); }

 private:
  c10d::GradBucket* bucket_;
  dist::ProcessGroup group_;
};

/// The new content of a bucket, of the buffer's shape: a tensor, or a function or future that
/// yields it. DDP calls it after all buckets have started, in the order of buckets, on the thread
/// of backward.
class HookResult {
 public:
  HookResult(at::Tensor tensor) : tensor_(std::move(tensor)) {}                   // NOLINT
  HookResult(std::function<at::Tensor()> finish) : finish_(std::move(finish)) {}  // NOLINT
  HookResult(std::future<at::Tensor> future)                                      // NOLINT
      : finish_([it = std::make_shared<std::future<at::Tensor>>(std::move(future))] {
          return it->get();
        }) {}
  template <std::invocable Finish>
  HookResult(Finish finish) : finish_(std::move(finish)) {}  // NOLINT: converts from a lambda

  at::Tensor get() { return finish_ ? finish_() : std::move(tensor_); }

 private:
  at::Tensor tensor_;
  std::function<at::Tensor()> finish_;
};

/// What a hook keeps from step to step, for snapshots; called between two steps. All functions or
/// none; none: the hook has no state. `save`, `load`: what is equal on all ranks. `save_own`,
/// `load_own`: what differs between ranks; a rank of which the snapshot has no state calls `load`
/// only, so `load` resets the rest.
struct HookState {
  std::function<StateDict()> save = {};
  std::function<void(const StateDict&)> load = {};
  std::function<StateDict()> save_own = {};
  std::function<void(const StateDict&)> load_own = {};
};

struct CommHook {
  /// For logging_data. A snapshot's state is loaded into a hook of this name only.
  std::string name;
  std::function<HookResult(GradBucket& bucket)> run;
  HookState state = {};
};

/// Averages, as without a hook.
CommHook allreduce_hook();
/// Sends gradients in 16 bits. bf16 keeps the range of float32.
CommHook fp16_compress_hook();
CommHook bf16_compress_hook();
/// Runs `inner` on the bucket in 16 bits.
CommHook fp16_compress_wrapper(CommHook inner);
CommHook bf16_compress_wrapper(CommHook inner);

/// Low-rank gradient compression. Python counterpart: PowerSGDState and powerSGD_hook, with the
/// same names, defaults and random numbers.
struct PowerSgdOptions {
  int64_t matrix_approximation_rank = 1;
  /// The step at which compression begins; before it the hook averages. At least 2 with
  /// use_error_feedback or warm_start.
  int64_t start_power_sgd_iter = 1000;
  double min_compression_rate = 2;
  bool use_error_feedback = true;
  bool warm_start = true;
  double orthogonalization_epsilon = 0;
  uint32_t random_seed = 0;  ///< equal on all ranks
};
/// Throws std::invalid_argument for options that do not fit together. The hook has state (P, Q,
/// error feedback, iteration, random numbers): use one per module. A Snapshot that tracks the
/// DistributedDataParallel keeps it.
CommHook power_sgd_hook(const PowerSgdOptions& options = {});

}  // namespace cpprun::nn::parallel
