#include "cpprun/nn/parallel/forward_watch.hpp"

#include <atomic>
#include <cstdio>

#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/autograd/utils/lambda_post_hook.h>
#include <torch/csrc/autograd/variable.h>

namespace cpprun::nn::parallel {

namespace autograd = torch::autograd;

struct ForwardWatch::Shared {
  std::string model_type;
  std::atomic<bool> expects_gradients{false}, averages{false};
  std::atomic<bool> sees_end{false};  // the running backward has a callback at its end
  std::atomic<bool> has_warned{false};

  void warn();
  static void on_gradient(const std::shared_ptr<Shared>& self);
};

void ForwardWatch::Shared::warn() {
  if (has_warned.exchange(true)) return;
  std::fprintf(
      stderr,
      "cpprun: DistributedDataParallel: a parameter of %s got a gradient without a forward "
      "of the DistributedDataParallel before that backward. Such gradients are not "
      "averaged, so the models of the ranks drift apart. Cure: train with ddp(x) or "
      "ddp->forward(x); ddp.module().forward(x) is for evaluation, under "
      "torch::NoGradGuard.\n",
      model_type.c_str());
}

void ForwardWatch::Shared::on_gradient(const std::shared_ptr<Shared>& self) {
  if (!self->expects_gradients) return self->warn();
  if (!self->averages || self->sees_end.exchange(true)) return;
  autograd::Engine::get_default_engine().queue_callback([self] {
    self->expects_gradients = false;
    self->sees_end = false;
  });
}

ForwardWatch::ForwardWatch(const std::vector<at::Tensor>& parameters, std::string model_type)
    : shared_(std::make_shared<Shared>()) {
  shared_->model_type = std::move(model_type);
  for (const at::Tensor& parameter : parameters) {
    auto accumulator = autograd::impl::grad_accumulator(parameter);
    const uintptr_t key =
        accumulator->add_post_hook(std::make_unique<autograd::utils::LambdaPostHook>(
            [shared = shared_](const autograd::variable_list& outputs,
                               const autograd::variable_list&) {
              Shared::on_gradient(shared);
              return outputs;
            }));
    hooks_.emplace_back(std::move(accumulator), key);
  }
}

ForwardWatch::~ForwardWatch() {
  for (const auto& [accumulator, key] : hooks_) accumulator->del_post_hook(key);
}

void ForwardWatch::on_forward(bool averages) {
  shared_->averages = averages;
  shared_->expects_gradients = true;
}

}  // namespace cpprun::nn::parallel
