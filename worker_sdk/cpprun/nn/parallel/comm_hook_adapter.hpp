// CommHookAdapter makes a CommHook usable by c10d::Reducer; start_sum is what the hooks of the SDK
// send. Private to nn.
//
// The Reducer expects a future per bucket. The adapter instead stores the second half of a hook and
// runs it when the Reducer asks for the result: in the order of buckets, on the thread of backward.
// Hence collectives in the second half have the same order on all ranks, unlike in callbacks on the
// backend's threads.
#pragma once

#include <map>

#include <torch/csrc/distributed/c10d/comm.hpp>

#include "cpprun/nn/parallel/comm_hooks.hpp"

namespace cpprun::nn::parallel {

class CommHookAdapter : public c10d::CommHookInterface {
 public:
  CommHookAdapter(CommHook hook, dist::ProcessGroup group)
      : hook_(std::move(hook)), group_(std::move(group)) {}
  c10::intrusive_ptr<c10::ivalue::Future> runHook(c10d::GradBucket& bucket) override;
  at::Tensor parseHookResult(const c10::IValue& result) override;
  const HookState& state() const { return hook_.state; }

 private:
  CommHook hook_;
  dist::ProcessGroup group_;
  std::map<int64_t, HookResult> pending_;  // by bucket index
};

// Starts a sum over the ranks, in place. Call the result to wait for it; it throws the error of the
// sum.
std::function<void()> start_sum(const dist::ProcessGroup& group, const at::Tensor& tensor);

}  // namespace cpprun::nn::parallel
