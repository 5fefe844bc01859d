// Work: a collective on its way. Python counterpart: torch.distributed.Work.
//
// A cheap copy of a shared handle. Dropping an unfinished Work is safe: the tensors live as long as
// the backend needs them. wait() may be called from any thread, more than once.
#pragma once

#include <chrono>
#include <exception>
#include <functional>
#include <memory>

namespace cpprun::dist {

class Work {
 public:
  struct State;

  Work() = default;  // done, and well
  explicit Work(std::shared_ptr<State> state) : state_(std::move(state)) {}

  // Blocks until done; throws what went wrong. On CUDA it orders streams, as in Python.
  void wait();
  // False: not done within `timeout` (the work goes on). Throws what went wrong.
  bool wait_for(std::chrono::milliseconds timeout);
  bool is_completed() const;
  // What went wrong, or null while running or done well.
  std::exception_ptr exception() const;

 private:
  std::shared_ptr<State> state_;
};

}  // namespace cpprun::dist
