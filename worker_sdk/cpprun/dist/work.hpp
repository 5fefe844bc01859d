// Work: a collective on its way. Python counterpart: torch.distributed.Work.
//
// A cheap copy of a shared handle. Dropping an unfinished Work is safe: the tensors live as long as
// the backend needs them, and a dropped isend is still sent. But what the SDK does itself after the
// backend (the division of AVG, copies back into tensors that are not contiguous) is done by the
// call that sees the end: wait, wait_for, is_completed or exception. Any thread, any number of
// times. After an error the group is broken, and its later calls say so (DistStateError).
#pragma once

#include <chrono>
#include <exception>
#include <memory>

namespace cpprun::dist {

class Work {
 public:
  struct State;  // dist/work_state.hpp

  Work() = default;  // done, and well
  explicit Work(std::shared_ptr<State> state) : state_(std::move(state)) {}

  // Blocks until done; throws what went wrong. On CUDA it orders streams, as in Python.
  void wait();
  // False: not done within `timeout` (the work goes on). Throws what went wrong.
  bool wait_for(std::chrono::milliseconds timeout);
  bool is_completed() const;
  // What went wrong, or null while running or done well.
  std::exception_ptr exception() const;

  const std::shared_ptr<State>& state() const { return state_; }

 private:
  std::shared_ptr<State> state_;
};

}  // namespace cpprun::dist
