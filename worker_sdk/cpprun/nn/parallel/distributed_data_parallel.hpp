// DistributedDataParallel: a module whose gradients are averaged over all ranks during backward.
//
//   auto net = std::make_shared<Net>();
//   nn::parallel::DistributedDataParallel ddp(net);
//   auto loss = F::mse_loss(ddp(x), y);  loss.backward();
//
// Buckets, overlap, unused parameters, static graph, gradient views and hooks are those of
// c10d::Reducer, so a step equals Python's bit for bit. Construct it on all ranks, after moving the
// module to its device, with the same module everywhere (checked, by names and shapes); destroy it
// before the process group. One thread. Python counterpart: torch.nn.parallel.
#pragma once

#include <memory>
#include <string>
#include <type_traits>
#include <typeinfo>
#include <utility>
#include <vector>

#include <torch/nn/module.h>
#include <torch/nn/pimpl.h>

#include "cpprun/dist/process_group.hpp"
#include "cpprun/nn/parallel/collect_tensors.hpp"
#include "cpprun/nn/parallel/comm_hooks.hpp"
#include "cpprun/nn/parallel/ddp_core.hpp"
#include "cpprun/nn/parallel/ddp_options.hpp"

namespace cpprun::nn::parallel {

// `Module` is the implementation class: `Net` for a struct derived from torch::nn::Module,
// `FooImpl` for a TORCH_MODULE holder.
template <class Module>
class DistributedDataParallel {
 public:
  explicit DistributedDataParallel(std::shared_ptr<Module> module, DdpOptions options = {})
      : module_(std::move(module)), core_(module_, std::move(options)) {}
  explicit DistributedDataParallel(torch::nn::ModuleHolder<Module> holder, DdpOptions options = {})
      : DistributedDataParallel(holder.ptr(), std::move(options)) {}

  // The module's own forward, with gradients made ready for backward. Returns what it returns, by
  // value. With device_ids, tensors among the arguments are moved to that device.
  template <class... Args>
  auto forward(Args&&... args) {
    core_.before_forward();
    auto output = call(std::forward<Args>(args)...);
    if constexpr (kIsOpaque<decltype(output)>) {
      core_.after_opaque_forward(typeid(output).name());
    } else if (core_.wants_outputs()) {
      std::vector<at::Tensor*> tensors;
      for_each_tensor(output, [&](at::Tensor& tensor) { tensors.push_back(&tensor); });
      core_.after_forward(tensors);
    } else {
      core_.after_forward();
    }
    return output;
  }
  template <class... Args>
  auto operator()(Args&&... args) {
    return forward(std::forward<Args>(args)...);
  }

  // The wrapped module: for its members, and for evaluation under torch::NoGradGuard. Its forward
  // bypasses this class: a backward after it averages nothing.
  Module& module() { return *module_; }
  const std::shared_ptr<Module>& ptr() const { return module_; }
  // Not the module's members: as with a module holder, ddp->forward(x) must be ddp(x).
  DistributedDataParallel* operator->() { return this; }
  const DistributedDataParallel* operator->() const { return this; }
  // All of the module's, each once however many names it has, as in Python: for optimizers.
  std::vector<at::Tensor> parameters() const { return core_.parameters(); }
  void train(bool on = true) { module_->train(on); }
  void eval() { module_->eval(); }

  // While it lives, backward adds up gradients without averaging. Forward must be inside as well.
  [[nodiscard]] NoSyncGuard no_sync() { return core_.no_sync_if(true); }
  [[nodiscard]] NoSyncGuard no_sync_if(bool on) { return core_.no_sync_if(on); }
  // For uneven inputs: ranks that ran out early answer the others' collectives at its finish().
  [[nodiscard]] JoinGuard join(JoinOptions options = {}) { return core_.join(options); }
  // Right with gradient views as well, where torch's Optimizer::zero_grad throws.
  void zero_grad(bool set_to_none = true) { core_.zero_grad(set_to_none); }
  // Once, before the first forward.
  void register_comm_hook(CommHook hook) { core_.register_comm_hook(std::move(hook)); }
  // Sizes, times and choices, as Python's _get_ddp_logging_data: name to value.
  std::vector<std::pair<std::string, std::string>> logging_data() const {
    return core_.logging_data();
  }

  DdpCore& core() { return core_; }

 private:
  // An argument, or a copy of it with its tensors moved to the device of device_ids.
  template <class Arg>
  decltype(auto) input(Arg&& arg) const {
    using Value = std::decay_t<Arg>;
    if constexpr (kIsOpaque<Value> || !std::is_class_v<Value>) {
      return std::forward<Arg>(arg);
    } else {
      Value moved(std::forward<Arg>(arg));
      if (const auto& device = core_.input_device()) {
        for_each_tensor(moved, [&](at::Tensor& tensor) { tensor = tensor.to(*device); });
      }
      return moved;
    }
  }

  template <class... Args>
  auto call(Args&&... args) {
    // A forward that takes references to what is not const can't be given copies.
    if constexpr (requires { module_->forward(this->input(std::forward<Args>(args))...); }) {
      if (core_.input_device()) return module_->forward(input(std::forward<Args>(args))...);
    }
    return module_->forward(std::forward<Args>(args)...);
  }

  std::shared_ptr<Module> module_;
  DdpCore core_;
};

template <class Module>
DistributedDataParallel(std::shared_ptr<Module>) -> DistributedDataParallel<Module>;
template <class Module>
DistributedDataParallel(std::shared_ptr<Module>, DdpOptions) -> DistributedDataParallel<Module>;

}  // namespace cpprun::nn::parallel
