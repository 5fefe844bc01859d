/// @file
/// DistributedDataParallel: a module whose gradients are averaged over all ranks during backward.
/// Python counterpart: torch.nn.parallel.DistributedDataParallel.
///
///     auto net = std::make_shared<Net>();
///     nn::parallel::DistributedDataParallel ddp(net);
///     auto loss = F::mse_loss(ddp(x), y);  loss.backward();
///
/// Buckets, overlap with backward, unused parameters, static graph, gradient views and hooks are
/// those of c10d::Reducer, so a step equals Python's bit for bit. Construct it on all ranks, after
/// the module is on its device, with the same module everywhere (checked by names and shapes).
/// Destroy it before the process group. One thread. Errors: std::invalid_argument for options that
/// do not fit the module, DistMismatchError for different models, UnusedParametersError
/// (ddp_options.hpp), and those of dist/errors.hpp.
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

/// A module whose gradients are averaged over all ranks during backward. Python counterpart:
/// torch.nn.parallel.DistributedDataParallel.
///
/// `Module`: the implementation class, that is `Net` for a class derived from torch::nn::Module,
/// `FooImpl` for the TORCH_MODULE holder `Foo`. One thread; destroy it before the process group.
template <class Module>
class DistributedDataParallel {
 public:
  /// @{
  /// Wraps the module, which is on its device already. A collective: the ranks compare their
  /// models, then get rank 0's parameters and buffers. Throws std::invalid_argument for options
  /// that do not fit the module, DistMismatchError if ranks wrap different models or options.
  explicit DistributedDataParallel(std::shared_ptr<Module> module, DdpOptions options = {})
      : module_(std::move(module)), core_(module_, std::move(options)) {}
  explicit DistributedDataParallel(torch::nn::ModuleHolder<Module> holder, DdpOptions options = {})
      : DistributedDataParallel(holder.ptr(), std::move(options)) {}
  /// @}

  /// Runs the module's forward, prepares the averaging in backward, and returns the result by
  /// value. With device_ids, moves tensors in the arguments to that device.
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
  /// The same as forward().
  template <class... Args>
  auto operator()(Args&&... args) {
    return forward(std::forward<Args>(args)...);
  }

  /// The wrapped module: for its members, and for evaluation under torch::NoGradGuard. A backward
  /// after module().forward() averages nothing.
  Module& module() { return *module_; }
  /// The wrapped module, shared.
  const std::shared_ptr<Module>& ptr() const { return module_; }
  /// @{
  /// Gives this object, not the module, so that ddp->forward(x) is the same as ddp(x).
  DistributedDataParallel* operator->() { return this; }
  const DistributedDataParallel* operator->() const { return this; }
  /// @}
  /// All parameters of the module, each once; for optimizers.
  std::vector<at::Tensor> parameters() const { return core_.parameters(); }
  /// @{
  /// Switches the wrapped module between training and evaluation.
  void train(bool on = true) { module_->train(on); }
  void eval() { module_->eval(); }
  /// @}

  /// @{
  /// Within the scope of the guard, backward accumulates gradients without averaging. Forward must
  /// be inside the scope, too. no_sync_if(false) changes nothing.
  [[nodiscard]] NoSyncGuard no_sync() { return core_.no_sync_if(true); }
  [[nodiscard]] NoSyncGuard no_sync_if(bool on) { return core_.no_sync_if(on); }
  /// @}
  /// For uneven inputs: ranks without data answer the collectives of the others until all have
  /// finished. Python: Join.
  [[nodiscard]] JoinGuard join(JoinOptions options = {}) { return core_.join(options); }
  /// Clears the gradients of all parameters. Works for gradient views, too;
  /// torch::optim::Optimizer::zero_grad throws for them.
  void zero_grad(bool set_to_none = true) { core_.zero_grad(set_to_none); }
  /// Replaces the averaging by `hook`. Call it once, before the first forward. Throws
  /// std::invalid_argument for an empty or a second hook.
  void register_comm_hook(CommHook hook) { core_.register_comm_hook(std::move(hook)); }
  /// Name and value of sizes, times and options. Python: _get_ddp_logging_data.
  std::vector<std::pair<std::string, std::string>> logging_data() const {
    return core_.logging_data();
  }

  /// For Snapshot: buckets and the state of the hook.
  DdpCore& core() { return core_; }

 private:
  // Returns the argument, or a copy of it with its tensors on the device of device_ids.
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
    // A forward with parameters of type T& cannot take copies.
    if constexpr (requires { module_->forward(this->input(std::forward<Args>(args))...); }) {
      if (core_.input_device()) return module_->forward(input(std::forward<Args>(args))...);
    }
    return module_->forward(std::forward<Args>(args)...);
  }

  std::shared_ptr<Module> module_;
  DdpCore core_;
};

}  // namespace cpprun::nn::parallel
