// Our CommHook in the Reducer's terms. Private to nn.
//
// The Reducer wants a future per bucket. What a hook leaves for later is kept here instead of in a
// future's callback and is finished when the Reducer asks for the result: in the order of buckets,
// on the thread of backward. So collectives that a hook makes in its second half come in the same
// order on all ranks, which callbacks on the backend's threads do not give.
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

 private:
  CommHook hook_;
  dist::ProcessGroup group_;
  std::map<int64_t, HookResult> pending_;  // by bucket
};

}  // namespace cpprun::nn::parallel
