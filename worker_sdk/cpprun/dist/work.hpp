/// @file
/// Work: an asynchronous collective. Python counterpart: torch.distributed.Work.
///
/// A shared handle, cheap to copy. It may be dropped before the work has ended: the tensors live as
/// long as the backend needs them, and a dropped isend is still sent. The SDK's own last step (the
/// division of AVG, copies back into tensors that are not contiguous) runs in the first call that
/// sees the end: wait, wait_for, is_completed or exception, or before the callback of then. A
/// dropped Work without a callback omits that step.
///
/// Threads: any; every function may be called repeatedly. After an error the group is broken and
/// its later calls throw DistStateError.
#pragma once

#include <chrono>
#include <exception>
#include <functional>
#include <memory>

namespace cpprun::dist {

/// An asynchronous collective: a shared handle, cheap to copy, which may be dropped. Python
/// counterpart: torch.distributed.Work. Any thread.
class Work {
 public:
  struct State;  ///< dist/collectives/work_state.hpp

  Work() = default;  ///< a work that has ended without an error
  /// For the SDK: a handle of `state`.
  explicit Work(std::shared_ptr<State> state) : state_(std::move(state)) {}

  /// Blocks until the work has ended; throws its error. CUDA: makes the current stream wait for the
  /// collective, as in Python, but only in the first call; a later call on another stream adds no
  /// dependency.
  void wait();
  /// The same with a limit. False: the work has not ended within `timeout` and continues.
  bool wait_for(std::chrono::milliseconds timeout);
  /// True if the work has ended, with or without an error.
  bool is_completed() const;
  /// The error of the work; null if it is running or has ended without one.
  std::exception_ptr exception() const;

  /// Runs `callback` once, after the work has ended without an error; the results are in the
  /// tensors of the collective. Returns a Work that ends after the callback, with a then() of its
  /// own. Python: work.get_future().then(callback).
  ///
  /// Thread: a thread of gloo; if the work has ended, the calling thread, before then() returns.
  /// nccl: the calling thread, at once, on a stream that waits for the collective; afterwards
  /// is_completed() of both Works is true, as Future.done() in Python, and wait() orders streams.
  /// NoGradGuard and autocast of the caller hold in the callback. The callback must not wait for
  /// other works: gloo may need this thread for them. Several callbacks of one work run in the
  /// order of the calls. then() does not block, unless another thread is in wait() of this work.
  ///
  /// Ownership: the callback runs even if both Works are dropped. What it refers to must live until
  /// the returned Work has ended. destroy_process_group() waits for it, at most 5 s.
  ///
  /// Errors: if the work ends with an error, the callback does not run, and waiters of both Works
  /// get the error. An exception of the callback reaches the waiters of the returned Work
  /// unchanged, and does not break the group. isend, irecv and reduce_scatter over gloo have no
  /// continuations, as in Python: DistUnsupportedError.
  Work then(std::function<void()> callback) const;

  /// For the SDK.
  const std::shared_ptr<State>& state() const { return state_; }

 private:
  std::shared_ptr<State> state_;
};

}  // namespace cpprun::dist
