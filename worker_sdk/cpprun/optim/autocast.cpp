#include "cpprun/optim/autocast.hpp"

#include <ATen/ATen.h>
#include <ATen/autocast_mode.h>

#include <stdexcept>

namespace cpprun::optim {
namespace {

bool can_work(at::DeviceType device, at::ScalarType dtype) {
  if (device == at::kCUDA && !at::hasCUDA()) {
    TORCH_WARN("CUDA is not available. Disabling autocast.");
    return false;
  }
  if (dtype != at::kHalf && dtype != at::kBFloat16) {
    TORCH_WARN("In ", device, " autocast, but the target dtype ", dtype,
               " is not supported: only float16 and bfloat16 are. Disabling autocast.");
    return false;
  }
  return true;
}

}  // namespace

Autocast::Autocast(at::DeviceType device, AutocastOptions options) : device_(device) {
  if (!at::autocast::is_autocast_available(device)) {
    throw std::invalid_argument("autocast knows no device type '" +
                                c10::DeviceTypeName(device, /*lower_case=*/true) + "'");
  }
  was_enabled_ = at::autocast::is_autocast_enabled(device);
  was_cache_enabled_ = at::autocast::is_autocast_cache_enabled();
  previous_dtype_ = at::autocast::get_autocast_dtype(device);
  const at::ScalarType dtype = options.dtype.value_or(previous_dtype_);
  at::autocast::set_autocast_enabled(device, options.enabled && can_work(device, dtype));
  at::autocast::set_autocast_dtype(device, dtype);
  at::autocast::increment_nesting();
  at::autocast::set_autocast_cache_enabled(options.cache_enabled.value_or(was_cache_enabled_));
}

Autocast::~Autocast() {
  if (at::autocast::decrement_nesting() == 0) at::autocast::clear_cache();
  at::autocast::set_autocast_enabled(device_, was_enabled_);
  at::autocast::set_autocast_dtype(device_, previous_dtype_);
  at::autocast::set_autocast_cache_enabled(was_cache_enabled_);
}

}  // namespace cpprun::optim
