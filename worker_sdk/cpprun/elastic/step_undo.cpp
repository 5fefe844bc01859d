#include "cpprun/elastic/step_undo.hpp"

#include <ATen/ATen.h>
#include <torch/nn/module.h>
#include <torch/optim/optimizer.h>

#include <algorithm>
#include <utility>

namespace cpprun::detail {
namespace {

constexpr int kNoCuda = -1;

// Optimizer::zero_grad throws for views into the buckets of DistributedDataParallel.
void drop_gradients(torch::optim::Optimizer& optimizer) {
  for (auto& group : optimizer.param_groups()) {
    for (at::Tensor& each : group.params()) each.mutable_grad().reset();
  }
}

}  // namespace

StepUndo::StepUndo(const ElasticState& state) {
  keep(snapshot::track_generators(kNoCuda));
  for (const snapshot::Tracked& each : state.objects()) {
    if (each.kind == snapshot::Kind::Module) {
      keep_buffers(*static_cast<const torch::nn::Module*>(each.object));
    } else if (each.kind == snapshot::Kind::Optimizer) {
      auto* optimizer = const_cast<torch::optim::Optimizer*>(
          static_cast<const torch::optim::Optimizer*>(each.object));
      optimizers_.push_back(optimizer);
      watches_.emplace_back(*optimizer);
    } else {
      keep(each);
    }
  }
}

void StepUndo::keep(const snapshot::Tracked& object) {
  snapshot::Capture capture;
  Kept& kept = kept_.emplace_back(Kept{object, object.save(capture), {}});
  kept.storages.add_copies(capture.take_storages());
}

void StepUndo::keep_buffers(const torch::nn::Module& module) {
  for (const at::Tensor& each : module.buffers()) {
    if (each.defined()) buffers_.push_back({each, each.detach().clone()});
  }
}

bool StepUndo::has_updated() const {
  return std::any_of(watches_.begin(), watches_.end(),
                     [](const UpdateWatch& each) { return each.has_begun(); });
}

void StepUndo::restore() {
  const at::NoGradGuard no_grad;
  for (const Buffer& each : buffers_) each.buffer.copy_(each.before);
  for (const Kept& each : kept_) each.object.load(each.value, each.storages);
  for (torch::optim::Optimizer* each : optimizers_) drop_gradients(*each);
}

}  // namespace cpprun::detail
