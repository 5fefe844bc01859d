/// @file
/// Autocast: during its lifetime, operations of this thread that profit from it run in float16 or
/// bfloat16.
///
///     at::Tensor loss;
///     { optim::Autocast cast(at::kCPU);  loss = F::mse_loss(ddp(x), y); }   // backward outside
///
/// Nested Autocasts may have other options. The end of the outermost drops the cached casts of
/// weights. Destroy it in the thread that constructed it, in reverse order. Python counterpart:
/// torch.autocast.
#pragma once

#include <optional>

#include <ATen/core/Tensor.h>

namespace cpprun::optim {

/// Options of Autocast: Python's keyword arguments.
struct AutocastOptions {
  std::optional<at::ScalarType> dtype = {};  ///< default: bfloat16 on CPU, float16 on CUDA
  bool enabled = true;                       ///< false: switches autocast off within this one
  std::optional<bool> cache_enabled = {};    ///< cache casts of weights; default: unchanged
};

/// While it lives, operations of this thread that profit from it run in float16 or bfloat16. Python
/// counterpart: torch.autocast.
class Autocast {
 public:
  /// As in Python, warns and has no effect without a GPU, or with another dtype than float16 and
  /// bfloat16. Throws std::invalid_argument for a device type without autocast.
  explicit Autocast(at::DeviceType device, AutocastOptions options = {});
  ~Autocast();
  Autocast(const Autocast&) = delete;
  Autocast& operator=(const Autocast&) = delete;

 private:
  at::DeviceType device_;
  bool was_enabled_, was_cache_enabled_;
  at::ScalarType previous_dtype_;
};

}  // namespace cpprun::optim

// The namespace of torch.amp.
namespace cpprun::amp {
using optim::Autocast;
using optim::AutocastOptions;
}  // namespace cpprun::amp
