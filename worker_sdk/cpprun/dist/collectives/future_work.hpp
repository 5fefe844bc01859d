// FutureWork: a c10d::Work that ends together with a future, for Work::then. Private to dist.
//
// Steps run where the future ends: in a thread of gloo, or in the thread that adds the step to a
// future that has ended. nccl's futures end at once; LibTorch runs their steps on a stream that
// waits for the collective.
#pragma once

#include <exception>
#include <functional>

#include <torch/csrc/distributed/c10d/Work.hpp>

namespace cpprun::dist {

using NativeFuture = c10::intrusive_ptr<c10::ivalue::Future>;

class FutureWork : public c10d::Work {
 public:
  explicit FutureWork(NativeFuture future) : future_(std::move(future)) {}

  bool isCompleted() override { return future_->completed(); }
  // Throws the future's error. The SDK waits without a timeout only.
  bool wait(std::chrono::milliseconds timeout) override;
  NativeFuture getFuture() override { return future_; }

 private:
  NativeFuture future_;
};

// A future that has ended, with `error` unless null.
NativeFuture ended_future(std::exception_ptr error);

// Runs `step` (null: nothing) when `before` has ended without an error. The result ends after the
// step, with the error of `before` or of the step, as `translate` (null: unchanged) returns it.
using Translate = std::function<std::exception_ptr(std::exception_ptr)>;
NativeFuture continued(const NativeFuture& before, std::function<void()> step,
                       Translate translate = {});

}  // namespace cpprun::dist
