#include "cpprun/optim/grad_scaler.hpp"

#include <ATen/ATen.h>
#include <torch/optim/optimizer.h>

#include <stdexcept>
#include <tuple>

#include "cpprun/dist/collectives.hpp"

namespace cpprun::optim {
namespace {

// Gradients by device and dtype: each rank has the same order.
using Gradients =
    std::map<std::tuple<at::DeviceType, at::DeviceIndex, at::ScalarType>, std::vector<at::Tensor>>;

Gradients gradients_of(torch::optim::Optimizer& optimizer) {
  Gradients all;
  for (const auto& group : optimizer.param_groups()) {
    for (const at::Tensor& parameter : group.params()) {
      at::Tensor gradient = parameter.grad();
      if (!gradient.defined()) continue;
      if (gradient.scalar_type() == at::kHalf) {
        throw std::invalid_argument(
            "Attempting to unscale FP16 gradients: keep parameters in float32 and let autocast "
            "make the float16 copies");
      }
      if (gradient.is_sparse()) gradient = gradient._values();
      const at::Device device = gradient.device();
      all[{device.type(), device.index(), gradient.scalar_type()}].push_back(gradient);
    }
  }
  return all;
}

double entry(const std::map<std::string, double>& state, const char* name) {
  const auto found = state.find(name);
  if (found == state.end()) {
    throw std::invalid_argument(
        std::string("the state of a GradScaler has no '") + name +
        "'; an empty one was possibly saved from a disabled instance of GradScaler");
  }
  return found->second;
}

}  // namespace

GradScaler::GradScaler(GradScalerOptions options) : options_(std::move(options)) {
  if (options_.growth_factor <= 1.0) {
    throw std::invalid_argument("The growth factor must be > 1.0, it is " +
                                std::to_string(options_.growth_factor));
  }
  if (options_.backoff_factor >= 1.0) {
    throw std::invalid_argument("The backoff factor must be < 1.0, it is " +
                                std::to_string(options_.backoff_factor));
  }
  if (options_.enabled) counted_.emplace();
}

at::Tensor GradScaler::scale_on(const at::Device& device) {
  if (!scale_.defined()) {
    scale_ = at::full({}, options_.init_scale, at::TensorOptions(at::kFloat).device(device));
    growth_tracker_ =
        at::full({}, init_growth_tracker_, at::TensorOptions(at::kInt).device(device));
  }
  return scale_.to(device, /*non_blocking=*/true);
}

at::Tensor GradScaler::scale(const at::Tensor& output) {
  return options_.enabled ? output * scale_on(output.device()) : output;
}

std::vector<at::Tensor> GradScaler::scale(const std::vector<at::Tensor>& outputs) {
  std::vector<at::Tensor> scaled;
  for (const at::Tensor& output : outputs) scaled.push_back(scale(output));
  return scaled;
}

void GradScaler::require_scale(const char* call) const {
  if (scale_.defined()) return;
  throw std::logic_error(std::string("Attempted ") + call +
                         " before any scale(): this may indicate that the program did not use "
                         "scaler.scale(loss) earlier in the iteration");
}

std::vector<at::Tensor> GradScaler::unscale_gradients(torch::optim::Optimizer& optimizer) const {
  const at::NoGradGuard no_grad;
  // In float64, because a float32 reciprocal may be off in its last bit.
  const at::Tensor inverse = scale_.to(at::kDouble).reciprocal().to(at::kFloat);
  std::vector<at::Tensor> found_inf;
  for (const auto& [key, gradients] : gradients_of(optimizer)) {
    const at::Device device = gradients[0].device();
    if (found_inf.empty() || found_inf.back().device() != device) {
      found_inf.push_back(at::zeros({}, at::TensorOptions(at::kFloat).device(device)));
    }
    at::_amp_foreach_non_finite_check_and_unscale_(gradients, found_inf.back(), inverse.to(device));
  }
  return found_inf;
}

void GradScaler::unscale_(torch::optim::Optimizer& optimizer) {
  if (!options_.enabled) return;
  require_scale("unscale_");
  OptimizerState& state = optimizers_[&optimizer];
  if (state.stage == Stage::Unscaled) {
    throw std::logic_error(
        "unscale_() has already been called on this optimizer since the last update().");
  }
  if (state.stage == Stage::Stepped) {
    throw std::logic_error("unscale_() is being called after step().");
  }
  state.found_inf = unscale_gradients(optimizer);
  if (options_.sync_found_inf) {
    // A rank without gradients must join the all-reduce too, else the other ranks hang.
    if (state.found_inf.empty()) state.found_inf.push_back(at::zeros_like(scale_));
    dist::CallOptions call;
    call.group = options_.process_group;
    for (const at::Tensor& found : state.found_inf) {
      dist::all_reduce(found, dist::ReduceOp::MAX, call);
    }
  }
  state.stage = Stage::Unscaled;
}

bool GradScaler::step(torch::optim::Optimizer& optimizer) {
  if (!options_.enabled) {
    optimizer.step();
    return true;
  }
  require_scale("step");
  if (optimizers_[&optimizer].stage == Stage::Stepped) {
    throw std::logic_error("step() has already been called since the last update().");
  }
  if (optimizers_[&optimizer].stage == Stage::Ready) unscale_(optimizer);
  OptimizerState& state = optimizers_[&optimizer];
  if (state.found_inf.empty()) {
    throw std::logic_error(
        "No inf checks were recorded for this optimizer: none of its parameters "
        "has a gradient.");
  }
  bool is_finite = true;
  for (const at::Tensor& found : state.found_inf) is_finite &= found.item<float>() == 0;
  if (is_finite) optimizer.step();
  state.stage = Stage::Stepped;
  return is_finite;
}

void GradScaler::update(std::optional<double> new_scale) {
  if (!options_.enabled) return;
  require_scale("update");
  const at::NoGradGuard no_grad;
  if (new_scale) {
    scale_.fill_(*new_scale);
  } else {
    at::Tensor combined;
    for (const auto& [optimizer, state] : optimizers_) {
      for (const at::Tensor& found : state.found_inf) {
        const at::Tensor here = found.to(scale_.device(), /*non_blocking=*/true);
        combined = combined.defined() ? combined + here : here;
      }
    }
    if (!combined.defined()) throw std::logic_error("No inf checks were recorded prior to update.");
    at::_amp_update_scale_(scale_, growth_tracker_, combined, options_.growth_factor,
                           options_.backoff_factor, options_.growth_interval);
  }
  optimizers_.clear();
}

double GradScaler::get_scale() const {
  if (!options_.enabled) return 1.0;
  return scale_.defined() ? scale_.item<double>() : options_.init_scale;
}

std::map<std::string, double> GradScaler::state_dict() const {
  if (!options_.enabled) return {};
  const auto good_steps =
      growth_tracker_.defined() ? growth_tracker_.item<int64_t>() : init_growth_tracker_;
  return {{"scale", get_scale()},
          {"growth_factor", options_.growth_factor},
          {"backoff_factor", options_.backoff_factor},
          {"growth_interval", static_cast<double>(options_.growth_interval)},
          {"_growth_tracker", static_cast<double>(good_steps)}};
}

void GradScaler::load_state_dict(const std::map<std::string, double>& state) {
  if (!options_.enabled) return;
  const double scale = entry(state, "scale");
  const double growth = entry(state, "growth_factor"), backoff = entry(state, "backoff_factor");
  const auto interval = static_cast<int64_t>(entry(state, "growth_interval"));
  init_growth_tracker_ = static_cast<int64_t>(entry(state, "_growth_tracker"));
  options_.init_scale = scale;
  options_.growth_factor = growth;
  options_.backoff_factor = backoff;
  options_.growth_interval = interval;
  if (scale_.defined()) {
    scale_.fill_(scale);
    growth_tracker_.fill_(init_growth_tracker_);
  }
}

}  // namespace cpprun::optim
