// A c10d::Work that the test completes by hand, and a dist::Work over it.
#pragma once

#include <atomic>
#include <memory>
#include <stdexcept>

#include <torch/csrc/distributed/c10d/Work.hpp>

#include "cpprun/dist/collectives/work_state.hpp"

namespace cpprun::dist {

// Like Gloo's collectives; `waits` counts the waiting callers.
class HandWork : public c10d::Work {
 public:
  bool wait(std::chrono::milliseconds timeout) override {
    ++waits;
    return c10d::Work::wait(timeout);
  }
  void abort() override {
    is_aborted = true;
    finish();
  }
  void end(std::exception_ptr error = nullptr) { finish(std::move(error)); }
  int sourceRank() const override { return 3; }

  std::atomic<int> waits = 0;
  std::atomic<bool> is_aborted = false;
};

struct Made {
  template <class Native>
  static Made make(c10::intrusive_ptr<Native> native, Work::State::Kind kind,
                   std::function<void()> finish = {}) {
    auto group = std::make_shared<ProcessGroup::State>();
    return {group, Work(std::make_shared<Work::State>(kind, "call in group", group,
                                                      std::move(native), std::move(finish)))};
  }
  std::shared_ptr<ProcessGroup::State> group;
  Work work;
};

inline std::exception_ptr broken() {
  return std::make_exception_ptr(std::runtime_error("Connection closed by peer [::1]:5"));
}

}  // namespace cpprun::dist
