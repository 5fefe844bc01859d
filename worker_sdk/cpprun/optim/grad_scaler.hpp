// GradScaler: a factor on the loss that keeps small float16 gradients from vanishing.
//
//   optim::GradScaler scaler;
//   scaler.scale(loss).backward();  scaler.step(optimizer);  scaler.update();
//
// A step whose gradients hold infinities or NaN is left out and makes the factor smaller; many good
// steps make it larger. It lives on the device of the first loss, CPU included. With
// DistributedDataParallel an infinity is on all ranks after the all-reduce, so they agree by
// themselves; where ranks have gradients of their own, set `sync_found_inf`. One thread. Python
// counterpart: torch.amp.GradScaler.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "cpprun/dist/process_group.hpp"

namespace torch::optim {
class Optimizer;
}

namespace cpprun::optim {

struct GradScalerOptions {
  double init_scale = 65536.0;
  double growth_factor = 2.0;      // more than 1
  double backoff_factor = 0.5;     // less than 1
  int64_t growth_interval = 2000;  // good steps in a row until the factor grows
  bool enabled = true;             // false: every call does as if there were no scaler
  bool sync_found_inf = false;     // one rank's infinity is all ranks': an all-reduce per unscale_
  dist::ProcessGroup process_group = {};  // for that; empty: the default group
};

class GradScaler {
 public:
  // Throws std::invalid_argument for factors that could not work.
  explicit GradScaler(GradScalerOptions options = {});

  at::Tensor scale(const at::Tensor& output);
  std::vector<at::Tensor> scale(const std::vector<at::Tensor>& outputs);
  // Divides the optimizer's gradients by the factor; for clip_grad_norm_ between backward and step.
  // Once per optimizer and update(), else std::logic_error; float16 gradients are
  // std::invalid_argument. step() does it if nobody has.
  void unscale_(torch::optim::Optimizer& optimizer);
  // optimizer.step(), unless its gradients hold infinities or NaN. True if it was taken.
  bool step(torch::optim::Optimizer& optimizer);
  // Once per iteration, after the step of the last optimizer. With `new_scale` the factor is that.
  void update(std::optional<double> new_scale = std::nullopt);

  double get_scale() const;  // waits for a GPU
  bool is_enabled() const { return options_.enabled; }

  // Python's five entries; empty when not enabled. Between update() and the next scale().
  std::map<std::string, double> state_dict() const;
  // Throws std::invalid_argument, naming what is missing.
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
  int64_t init_growth_tracker_ = 0;
  at::Tensor scale_, growth_tracker_;  // undefined until the first scale()
  std::map<const torch::optim::Optimizer*, OptimizerState> optimizers_;  // since update()
};

}  // namespace cpprun::optim
