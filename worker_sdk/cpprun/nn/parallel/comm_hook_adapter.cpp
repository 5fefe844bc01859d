#include "cpprun/nn/parallel/comm_hook_adapter.hpp"

#include <torch/csrc/autograd/grad_mode.h>

namespace cpprun::nn::parallel {

c10::intrusive_ptr<c10::ivalue::Future> CommHookAdapter::runHook(c10d::GradBucket& bucket) {
  const at::NoGradGuard no_grad;
  GradBucket ours(bucket, group_);
  const auto index = static_cast<int64_t>(bucket.getIndex());
  pending_.insert_or_assign(index, hook_.run(ours));
  auto future = c10::make_intrusive<c10::ivalue::Future>(c10::IntType::get());
  future->markCompleted(c10::IValue(index));
  return future;
}

at::Tensor CommHookAdapter::parseHookResult(const c10::IValue& result) {
  const at::NoGradGuard no_grad;
  auto node = pending_.extract(result.toInt());
  return node.mapped().get();
}

}  // namespace cpprun::nn::parallel
