/// @file
/// Work: an asynchronous collective. Python counterpart: torch.distributed.Work.
///
/// A shared handle, cheap to copy. It may be dropped before the work has ended: the tensors live as
/// long as the backend needs them, and a dropped isend is still sent. The SDK's own last step (the
/// division of AVG, copies back into tensors that are not contiguous) runs in the first call that
/// sees the end: wait, wait_for, is_completed or exception. A dropped Work omits that step.
///
/// Threads: any; every function may be called repeatedly. After an error the group is broken and
/// its later calls throw DistStateError.
#pragma once

#include <chrono>
#include <exception>
#include <memory>

namespace cpprun::dist {

/// An asynchronous collective: a shared handle, cheap to copy, which may be dropped. Python
/// counterpart: torch.distributed.Work. Any thread.
class Work {
 public:
  struct State;  ///< dist/work_state.hpp

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

  /// For the SDK.
  const std::shared_ptr<State>& state() const { return state_; }

 private:
  std::shared_ptr<State> state_;
};

}  // namespace cpprun::dist
