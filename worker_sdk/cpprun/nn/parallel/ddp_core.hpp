// DistributedDataParallel without the module's type: everything that needs no template.
//
// It owns a c10d::Reducer and a c10d::Logger, behind DdpState so that this header stays light. One
// thread; backward may run its hooks on the autograd thread.
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

class DdpCore {
 public:
  // Collective with init_sync. Throws std::invalid_argument for options that don't fit the module,
  // DistMismatchError when ranks wrap different models or options.
  DdpCore(const std::shared_ptr<torch::nn::Module>& module, DdpOptions options);
  DdpCore(DdpCore&&) noexcept = default;
  DdpCore& operator=(DdpCore&&) noexcept = default;
  ~DdpCore();

  // Around the module's forward. after_forward may replace the outputs it is given; they are needed
  // only if wants_outputs().
  void before_forward();
  bool wants_outputs() const;
  void after_forward(const std::vector<at::Tensor*>& outputs = {});
  // For outputs of a type that we can't look into: an error if they are needed.
  void after_opaque_forward(const char* type);
  // Where inputs go; none: they stay.
  const std::optional<c10::Device>& input_device() const;

  NoSyncGuard no_sync_if(bool on);
  JoinGuard join(const JoinOptions& options);
  void zero_grad(bool set_to_none);
  void register_comm_hook(CommHook hook);
  std::vector<std::pair<std::string, std::string>> logging_data() const;
  // All of the module's, ignored ones too; each once, where LibTorch's Module::parameters() lists
  // one of two names twice.
  const std::vector<at::Tensor>& parameters() const;
  // Names of the parameters that are averaged, in the Reducer's order.
  const std::vector<std::string>& parameter_names() const;

  // Which parameters, by their places in parameter_names(), are summed together: "2 1;0". The
  // Reducer settles that after the first step. With more than two ranks the last bits of a sum
  // depend on it, so whoever continues a run exactly sets it as it was. Collective, between steps.
  std::string buckets();
  // Before the first forward, on all ranks; later, and for another model, it has no effect.
  void set_buckets(const std::string& text);

 private:
  std::shared_ptr<DdpState> state_;  // shared with guards and with graphs that outlive us
};

}  // namespace cpprun::nn::parallel
