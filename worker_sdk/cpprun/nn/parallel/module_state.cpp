#include "cpprun/nn/parallel/module_state.hpp"

#include <set>
#include <stdexcept>
#include <unordered_set>

#include <c10/util/Type.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/embedding.h>

#include "common/text.hpp"
#include "cpprun/nn/sync_batch_norm.hpp"

namespace cpprun::nn::parallel {
namespace {

using torch::nn::Module;
using Seen = std::unordered_set<const at::TensorImpl*>;

bool makes_sparse_gradients(const Module& module) {
  if (const auto* embedding = dynamic_cast<const torch::nn::EmbeddingImpl*>(&module)) {
    return embedding->options.sparse();
  }
  const auto* bag = dynamic_cast<const torch::nn::EmbeddingBagImpl*>(&module);
  return bag != nullptr && bag->options.sparse();
}

bool is_batch_norm(const Module& module) {
  return dynamic_cast<const torch::nn::BatchNorm1dImpl*>(&module) != nullptr ||
         dynamic_cast<const torch::nn::BatchNorm2dImpl*>(&module) != nullptr ||
         dynamic_cast<const torch::nn::BatchNorm3dImpl*>(&module) != nullptr;
}

std::string joined(const std::string& path, const std::string& name) {
  return path.empty() ? name : path + "." + name;
}

// Walks like Python's named_modules: a module, then its children, each module once.
class Collector {
 public:
  Collector(const DdpOptions& options, ModuleState& state) : options_(options), state_(state) {}

  void walk(const std::string& path, Module& module) {
    if (!modules_.insert(&module).second) return;
    note_norms(path, module);
    take_parameters(path, module);
    take_buffers(path, module);
    for (const auto& child : module.named_children())
      walk(joined(path, child.key()), *child.value());
  }

 private:
  bool is_ignored(const std::string& name) const {
    return options_.ignored_parameters.contains(name);
  }

  void note_norms(const std::string& path, const Module& module) {
    if (dynamic_cast<const SyncBatchNormImpl*>(&module) != nullptr)
      state_.has_sync_batch_norm = true;
    if (state_.plain_batch_norm.empty() && is_batch_norm(module)) {
      state_.plain_batch_norm = path.empty() ? "the module itself" : path;
    }
  }

  void take_parameters(const std::string& path, const Module& module) {
    const bool sparse = makes_sparse_gradients(module);
    for (const auto& item : module.named_parameters(/*recurse=*/false)) {
      const at::Tensor& tensor = item.value();
      const std::string name = joined(path, item.key());
      if (!tensor.defined() || !parameters_.insert(tensor.unsafeGetTensorImpl()).second) continue;
      state_.all_parameters.push_back(tensor);
      if (is_ignored(name)) continue;
      state_.parameters.emplace_back(name, tensor);
      if (!tensor.requires_grad()) continue;
      state_.names.push_back(name);
      state_.reduced.push_back(tensor);
      state_.is_sparse.push_back(sparse);
    }
  }

  void take_buffers(const std::string& path, const Module& module) {
    for (const auto& item : module.named_buffers(/*recurse=*/false)) {
      const at::Tensor& tensor = item.value();
      const std::string name = joined(path, item.key());
      if (!tensor.defined() || !buffers_.insert(tensor.unsafeGetTensorImpl()).second) continue;
      if (is_ignored(name)) continue;
      state_.buffers.emplace_back(name, tensor);
      state_.buffer_list.push_back(tensor);
    }
  }

  const DdpOptions& options_;
  ModuleState& state_;
  std::unordered_set<const Module*> modules_;
  Seen parameters_, buffers_;
};

std::set<std::string> device_names(const NamedTensors& tensors) {
  std::set<std::string> names;
  for (const auto& [name, tensor] : tensors) names.insert(tensor.device().str());
  return names;
}

[[noreturn]] void refuse(const std::string& why) {
  throw std::invalid_argument("DistributedDataParallel: " + why);
}

void check_one_kind(const NamedTensors& parameters) {
  std::set<std::string> kinds;
  for (const auto& [name, tensor] : parameters)
    kinds.insert(c10::DeviceTypeName(tensor.device().type(), true));
  if (kinds.size() == 1) return;
  refuse("the module's parameters are on devices of several kinds (" +
         text::join({kinds.begin(), kinds.end()}, ", ") +
         "); move the whole module to one kind first: module->to(device)");
}

void check_device(const ModuleState& state, int wanted) {
  const c10::Device device(state.parameters.front().second.device().type(),
                           static_cast<c10::DeviceIndex>(wanted));
  for (const auto& [name, tensor] : state.parameters) {
    if (tensor.device() == device) continue;
    refuse("device_ids names " + device.str() + ", but parameter " + name + " is on " +
           tensor.device().str() + "; call module->to(c10::Device(\"" + device.str() +
           "\")) before wrapping, with the local rank as index");
  }
}

}  // namespace

ModuleState collect_state(Module& module, const DdpOptions& options) {
  ModuleState state;
  state.type = c10::demangle(typeid(module).name());
  Collector(options, state).walk("", module);
  if (state.reduced.empty()) {
    refuse("not needed: " + state.type + " has no parameter that requires a gradient" +
           (options.ignored_parameters.empty() ? "" : " and is not ignored"));
  }
  return state;
}

void check_devices(const ModuleState& state, const DdpOptions& options) {
  check_one_kind(state.parameters);
  if (options.device_ids.size() > 1) {
    refuse("device_ids is " + c10::str(c10::ArrayRef<int>(options.device_ids)) +
           "; it may hold one device, or none: one process drives one device");
  }
  const auto devices = device_names(state.parameters);
  const bool is_cpu = state.parameters.front().second.is_cpu();
  if (!is_cpu && devices.size() == 1) {
    if (!options.device_ids.empty()) check_device(state, options.device_ids.front());
    return;
  }
  if (options.device_ids.empty() && !options.output_device) return;
  refuse("device_ids and output_device are for modules on one GPU, but device_ids is " +
         c10::str(c10::ArrayRef<int>(options.device_ids)) + " (cuda:" +
         std::to_string(options.device_ids.empty() ? *options.output_device
                                                   : options.device_ids.front()) +
         ") and the module's parameters are on " +
         text::join({devices.begin(), devices.end()}, ", ") +
         "; leave both empty, or move the module first");
}

}  // namespace cpprun::nn::parallel
