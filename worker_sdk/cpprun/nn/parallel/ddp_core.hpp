/// @file
/// DdpCore: the part of DistributedDataParallel that does not depend on the module's type. Private
/// to nn, apart from buckets() and set_buckets().
///
/// DdpState, a separate class to keep this header light, owns c10d's Reducer and Logger. One
/// thread; backward may run the hooks on an autograd thread.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

#include "cpprun/nn/parallel/comm_hooks.hpp"
#include "cpprun/nn/parallel/ddp_options.hpp"
#include "cpprun/nn/parallel/guards.hpp"

namespace torch::nn {
class Module;
}

namespace cpprun::nn::parallel {

/// The part of DistributedDataParallel that does not depend on the module's type. Programs use it
/// only through DistributedDataParallel::core().
class DdpCore {
 public:
  /// A collective if init_sync. Throws std::invalid_argument for options that do not fit the
  /// module, DistMismatchError if ranks wrap different models or options.
  DdpCore(const std::shared_ptr<torch::nn::Module>& module, DdpOptions options);
  /// @{
  /// The state moves along; guards and graphs keep referring to it.
  DdpCore(DdpCore&&) noexcept = default;
  DdpCore& operator=(DdpCore&&) noexcept = default;
  /// @}
  ~DdpCore();

  /// @{
  /// Call them before and after the module's forward. after_forward needs the outputs only if
  /// wants_outputs(), and may replace them.
  void before_forward();
  bool wants_outputs() const;
  void after_forward(const std::vector<at::Tensor*>& outputs = {});
  /// @}
  /// For outputs of a type without visit_tensors: throws std::invalid_argument if they are needed.
  void after_opaque_forward(const char* type);
  /// The device to which inputs are moved; none: they are not moved.
  const std::optional<c10::Device>& input_device() const;

  /// @{
  /// As the members of DistributedDataParallel with these names.
  NoSyncGuard no_sync_if(bool on);
  JoinGuard join(const JoinOptions& options);
  void zero_grad(bool set_to_none);
  void register_comm_hook(CommHook hook);
  std::vector<std::pair<std::string, std::string>> logging_data() const;
  /// @}
  /// All parameters of the module, ignored ones too, each once; LibTorch's Module::parameters()
  /// lists a parameter with two names twice.
  const std::vector<at::Tensor>& parameters() const;
  /// Names of the averaged parameters, in the Reducer's order.
  const std::vector<std::string>& parameter_names() const;

  /// The buckets, that is which parameters are summed together, as indices into parameter_names():
  /// "2 1;0". The Reducer fixes them after the first step. With more than two ranks the last bits
  /// of a sum depend on them, so a run that must resume bit-exactly restores them. A collective;
  /// call it between steps.
  std::string buckets();
  /// Call it on all ranks before the first forward. No effect after it, or for another model's
  /// buckets.
  void set_buckets(const std::string& text);
  /// @{
  /// The state of the communication hook: what is equal on all ranks, and what is this rank's own.
  /// Empty: there is no hook, or it has no state. A state that is loaded before the hook is
  /// registered waits for it; call load_hook_state() first.
  StateDict hook_state() const;
  StateDict own_hook_state() const;
  void load_hook_state(const StateDict& state);
  void load_own_hook_state(const StateDict& state);
  /// @}

 private:
  std::shared_ptr<DdpState> state_;  // shared with guards, and with graphs that outlive this object
};

}  // namespace cpprun::nn::parallel
