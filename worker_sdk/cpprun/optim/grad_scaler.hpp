/// @file
/// GradScaler: scales the loss so that small float16 gradients do not become zero.
///
///     optim::GradScaler scaler;
///     scaler.scale(loss).backward();  scaler.step(optimizer);  scaler.update();
///
/// Skips a step whose gradients have infinities or NaN, and then decreases the factor; many finite
/// steps in a row increase it. The factor is on the device of the first loss, CPU included. With
/// DistributedDataParallel the all-reduce spreads an infinity to all ranks, so that they agree; if
/// ranks have different gradients, set `sync_found_inf`. One thread. Python counterpart:
/// torch.amp.GradScaler.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "cpprun/dist/live_objects.hpp"
#include "cpprun/dist/process_group.hpp"

namespace torch::optim {
class Optimizer;
}

namespace cpprun::optim {

/// Options of GradScaler, with Python's names and defaults; `sync_found_inf` in addition.
struct GradScalerOptions {
  double init_scale = 65536.0;     ///< the factor before the first update()
  double growth_factor = 2.0;      ///< > 1
  double backoff_factor = 0.5;     ///< < 1
  int64_t growth_interval = 2000;  ///< finite steps in a row before the factor grows
  bool enabled = true;             ///< false: behaves as if there were no scaler
  bool sync_found_inf = false;     ///< all ranks skip together; one all-reduce per unscale_()
  dist::ProcessGroup process_group = {};  ///< for sync_found_inf; empty: the default group
};

/// Scales the loss so that small float16 gradients do not become zero, and skips steps with
/// infinities. Python counterpart: torch.amp.GradScaler. One thread.
class GradScaler {
 public:
  /// Throws std::invalid_argument unless growth_factor > 1 and backoff_factor < 1.
  explicit GradScaler(GradScalerOptions options = {});

  /// @{
  /// Returns `output` times the factor, for backward(); unchanged when not enabled.
  at::Tensor scale(const at::Tensor& output);
  std::vector<at::Tensor> scale(const std::vector<at::Tensor>& outputs);
  /// @}
  /// Divides the optimizer's gradients by the factor; call it before clip_grad_norm_. step() calls
  /// it if the program did not. Throws std::logic_error if called twice for one optimizer before
  /// update(), std::invalid_argument for float16 gradients.
  void unscale_(torch::optim::Optimizer& optimizer);
  /// Calls optimizer.step() unless the gradients have infinities or NaN. Returns whether it did.
  bool step(torch::optim::Optimizer& optimizer);
  /// Call it once per iteration, after the step of the last optimizer. Adapts the factor, or sets
  /// it to `new_scale`.
  void update(std::optional<double> new_scale = std::nullopt);

  /// The factor: init_scale before the first scale(), 1 when not enabled. Synchronises with a GPU.
  double get_scale() const;
  bool is_enabled() const { return options_.enabled; }  ///< GradScalerOptions::enabled

  /// The five entries of Python; empty when not enabled. Call it between update() and scale().
  std::map<std::string, double> state_dict() const;
  /// Throws std::invalid_argument that names a missing entry.
  void load_state_dict(const std::map<std::string, double>& state);

 private:
  enum class Stage { Ready, Unscaled, Stepped };
  struct OptimizerState {
    Stage stage = Stage::Ready;
    std::vector<at::Tensor> found_inf;  // one per device
  };
  at::Tensor scale_on(const at::Device& device);
  void require_scale(const char* call) const;
  std::vector<at::Tensor> unscale_gradients(torch::optim::Optimizer& optimizer) const;

  GradScalerOptions options_;
  std::optional<dist::Counted<dist::LiveObjects::scalers>> counted_;  // if enabled
  int64_t init_growth_tracker_ = 0;
  at::Tensor scale_, growth_tracker_;  // undefined until the first scale()
  std::map<const torch::optim::Optimizer*, OptimizerState> optimizers_;  // since update()
};

}  // namespace cpprun::optim

// The namespace of torch.amp.
namespace cpprun::amp {
using optim::GradScaler;
using optim::GradScalerOptions;
}  // namespace cpprun::amp
