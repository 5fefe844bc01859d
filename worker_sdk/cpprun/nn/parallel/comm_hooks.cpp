#include "cpprun/nn/parallel/comm_hooks.hpp"

#include <torch/csrc/autograd/grad_mode.h>

#include "cpprun/dist/native.hpp"
#include "cpprun/nn/parallel/comm_hook_adapter.hpp"

namespace cpprun::nn::parallel {
namespace {

HookResult average(const GradBucket& bucket) {
  // Divides first, so that the sum of half-precision numbers does not overflow.
  const at::Tensor buffer = bucket.buffer().div_(bucket.world_size());
  return [wait = start_sum(bucket.group(), buffer), buffer] {
    wait();
    return buffer;
  };
}

HookResult compressed_average(const GradBucket& bucket, at::ScalarType type) {
  const at::Tensor buffer = bucket.buffer();
  const at::Tensor small = buffer.to(type).div_(bucket.world_size());
  return [wait = start_sum(bucket.group(), small), buffer, small] {
    wait();
    buffer.copy_(small);
    return buffer;
  };
}

CommHook wrapped(CommHook inner, at::ScalarType type, const std::string& name) {
  return {name + "(" + inner.name + ")",
          [run = inner.run, type](GradBucket& bucket) -> HookResult {
            const at::Tensor buffer = bucket.buffer();
            bucket.set_buffer(buffer.to(type));
            auto result = std::make_shared<HookResult>(run(bucket));
            return [buffer, result] {
              buffer.copy_(result->get());
              return buffer;
            };
          },
          inner.state};
}

}  // namespace

std::function<void()> start_sum(const dist::ProcessGroup& group, const at::Tensor& tensor) {
  std::vector<at::Tensor> tensors{tensor};
  auto work = dist::native(group)->allreduce(tensors);
  return [work, tensors] { work->wait(); };
}

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

size_t GradBucket::index() const { return bucket_->getIndex(); }
at::Tensor GradBucket::buffer() const { return bucket_->getBuffer(); }
void GradBucket::set_buffer(at::Tensor buffer) { bucket_->setBuffer(buffer); }
std::vector<at::Tensor> GradBucket::gradients() const { return bucket_->getGradients(); }
std::vector<at::Tensor> GradBucket::parameters() const { return bucket_->getParameters(); }
bool GradBucket::is_last() const { return bucket_->isLast(); }

CommHook allreduce_hook() { return {"allreduce_hook", average, {}}; }

CommHook fp16_compress_hook() {
  return {"fp16_compress_hook",
          [](const GradBucket& bucket) { return compressed_average(bucket, at::kHalf); },
          {}};
}

CommHook bf16_compress_hook() {
  return {"bf16_compress_hook",
          [](const GradBucket& bucket) { return compressed_average(bucket, at::kBFloat16); },
          {}};
}

CommHook fp16_compress_wrapper(CommHook inner) {
  return wrapped(std::move(inner), at::kHalf, "fp16_compress_wrapper");
}

CommHook bf16_compress_wrapper(CommHook inner) {
  return wrapped(std::move(inner), at::kBFloat16, "bf16_compress_wrapper");
}

}  // namespace cpprun::nn::parallel
