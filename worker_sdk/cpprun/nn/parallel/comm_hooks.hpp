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
  /// For the SDK: a view of c10d's bucket.
  GradBucket(c10d::GradBucket& bucket, dist::ProcessGroup group)
      : bucket_(&bucket), group_(std::move(group)) {}
  size_t index() const;       ///< the bucket's number in this backward, from 0
  at::Tensor buffer() const;  ///< all gradients, flattened; one dimension
  /// Replaces the bucket's buffer by one of the same number of elements, for a hook that calls
  /// another one.
  void set_buffer(at::Tensor buffer);
  /// Views into buffer(), each of its parameter's shape.
  std::vector<at::Tensor> gradients() const;
  /// The parameters of this bucket, in the order of gradients().
  std::vector<at::Tensor> parameters() const;
  bool is_last() const;                                       ///< the last bucket of this backward
  const dist::ProcessGroup& group() const { return group_; }  ///< of the DDP module
  int world_size() const { return group_.size(); }            ///< number of ranks that average

 private:
  c10d::GradBucket* bucket_;
  dist::ProcessGroup group_;
};

/// The new content of a bucket, of the buffer's shape: a tensor, or a function or future that
/// yields it. DDP calls it after all buckets have started, in the order of buckets, on the thread
/// of backward.
class HookResult {
 public:
  /// A result that is ready.
  HookResult(at::Tensor tensor) : tensor_(std::move(tensor)) {}  // NOLINT
  /// A function that waits for the result and returns it.
  HookResult(std::function<at::Tensor()> finish) : finish_(std::move(finish)) {}  // NOLINT
  /// A result of another thread.
  HookResult(std::future<at::Tensor> future)  // NOLINT
      : finish_([it = std::make_shared<std::future<at::Tensor>>(std::move(future))] {
          return it->get();
        }) {}
  /// From a lambda that returns a tensor.
  template <std::invocable Finish>
  HookResult(Finish finish) : finish_(std::move(finish)) {}  // NOLINT: converts from a lambda

  /// Waits for the result. DistributedDataParallel calls it once.
  at::Tensor get() { return finish_ ? finish_() : std::move(tensor_); }

 private:
  at::Tensor tensor_;
  std::function<at::Tensor()> finish_;
};

/// What a hook keeps from step to step, for snapshots; called between two steps. All functions or
/// none; none: the hook has no state.
struct HookState {
  /// The state that is equal on all ranks.
  std::function<StateDict()> save = {};
  /// Loads it. A rank of which the snapshot has no own state calls only this function, so it resets
  /// the rest.
  std::function<void(const StateDict&)> load = {};
  /// The state that differs between ranks.
  std::function<StateDict()> save_own = {};
  /// Loads this rank's own state, after `load`.
  std::function<void(const StateDict&)> load_own = {};
};

/// A hook with its name; the functions below return the known ones.
struct CommHook {
  /// For logging_data. A snapshot's state is loaded into a hook of this name only.
  std::string name;
  /// Called for each bucket during backward, on the thread of backward, without gradients.
  std::function<HookResult(GradBucket& bucket)> run;
  HookState state = {};  ///< for hooks that have one
};

/// Averages, as without a hook.
CommHook allreduce_hook();
/// @{
/// Average gradients in 16 bits. bf16 keeps the range of float32.
CommHook fp16_compress_hook();
CommHook bf16_compress_hook();
/// @}
/// @{
/// Run `inner` on the bucket in 16 bits.
CommHook fp16_compress_wrapper(CommHook inner);
CommHook bf16_compress_wrapper(CommHook inner);
/// @}

/// Low-rank gradient compression. Python counterpart: PowerSGDState and powerSGD_hook, with the
/// same names, defaults and random numbers.
struct PowerSgdOptions {
  int64_t matrix_approximation_rank = 1;  ///< columns of P and Q
  /// The step at which compression begins; before it the hook averages. At least 2 with
  /// use_error_feedback or warm_start.
  int64_t start_power_sgd_iter = 1000;
  /// A gradient is compressed if that makes it smaller by more than this factor.
  double min_compression_rate = 2;
  /// Add what compression lost in a step to the gradient of the next one.
  bool use_error_feedback = true;
  /// Begin each step with Q of the step before instead of random numbers.
  bool warm_start = true;
  /// Added to the norm of a column before the division by it; 0: nothing is added.
  double orthogonalization_epsilon = 0;
  uint32_t random_seed = 0;  ///< equal on all ranks
};
/// Throws std::invalid_argument for options that do not fit together. The hook has state (P, Q,
/// error feedback, iteration, random numbers): use one per module. A Snapshot that tracks the
/// DistributedDataParallel keeps it.
CommHook power_sgd_hook(const PowerSgdOptions& options = {});

}  // namespace cpprun::nn::parallel
