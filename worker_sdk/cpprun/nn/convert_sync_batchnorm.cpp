#include <functional>
#include <stdexcept>
#include <vector>

#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/container/any.h>
#include <torch/nn/modules/container/sequential.h>

#include "cpprun/nn/sync_batch_norm.hpp"

namespace cpprun::nn {
namespace {

using torch::nn::Module;
using SyncPtr = std::shared_ptr<SyncBatchNormImpl>;

template <class Norm>
SyncPtr converted_as(const Norm& norm, const dist::ProcessGroup& group) {
  auto sync = std::make_shared<SyncBatchNormImpl>(
      norm.options,
      SyncBatchNormImpl::Tensors{norm.weight, norm.bias, norm.running_mean, norm.running_var,
                                 norm.num_batches_tracked},
      group);
  sync->train(norm.is_training());
  return sync;
}

// Null if `module` is no BatchNorm.
SyncPtr converted(const Module& module, const dist::ProcessGroup& group) {
  if (const auto* norm = module.as<torch::nn::BatchNorm1dImpl>()) return converted_as(*norm, group);
  if (const auto* norm = module.as<torch::nn::BatchNorm2dImpl>()) return converted_as(*norm, group);
  if (const auto* norm = module.as<torch::nn::BatchNorm3dImpl>()) return converted_as(*norm, group);
  return nullptr;
}

// Finds all replacements first, so that a module that cannot be converted stays unchanged.
class Plan {
 public:
  explicit Plan(const dist::ProcessGroup& group) : group_(group) {}

  void visit(const std::string& path, Module& module) {
    size_t index = 0;
    for (const auto& child : module.named_children()) {
      const std::string name = path.empty() ? child.key() : path + "." + child.key();
      if (SyncPtr sync = converted(*child.value(), group_)) {
        plan_swap(name, module, child.key(), index, std::move(sync));
      } else {
        visit(name, *child.value());
      }
      ++index;
    }
  }

  void apply() const {
    if (!fixed_.empty()) {
      throw std::invalid_argument("convert_sync_batchnorm: can't swap " + fixed_ +
                                  ": a C++ member has one type for ever. Declare it as "
                                  "cpprun::nn::SyncBatchNorm, or put it "
                                  "into a torch::nn::Sequential");
    }
    for (const auto& swap : swaps_) swap();
  }

 private:
  void plan_swap(const std::string& name, Module& parent, const std::string& key, size_t index,
                 SyncPtr sync) {
    auto* sequence = parent.as<torch::nn::SequentialImpl>();
    if (sequence == nullptr) {
      fixed_ += (fixed_.empty() ? "" : ", ") + name;
      return;
    }
    swaps_.emplace_back([sequence, key, index, sync] {
      *(sequence->begin() + static_cast<std::ptrdiff_t>(index)) = torch::nn::AnyModule(sync);
      sequence->replace_module(key, sync);
    });
  }

  dist::ProcessGroup group_;
  std::string fixed_;  // paths of members that cannot be replaced
  std::vector<std::function<void()>> swaps_;
};

}  // namespace

std::shared_ptr<Module> convert_sync_batchnorm(std::shared_ptr<Module> module,
                                               const dist::ProcessGroup& group) {
  if (!module) throw std::invalid_argument("convert_sync_batchnorm: the module is empty");
  if (SyncPtr sync = converted(*module, group)) return sync;
  Plan plan(group);
  plan.visit("", *module);
  plan.apply();
  return module;
}

}  // namespace cpprun::nn
