// Autocast: while it lives, operations of this thread that gain by it run in a small number type.
//
//   at::Tensor loss;
//   { optim::Autocast cast(at::kCPU);  loss = F::mse_loss(ddp(x), y); }   // backward outside
//
// Nested ones may differ; the casts of weights that it keeps are dropped at the end of the
// outermost. Of the thread that made it, which must also end it. Python counterpart:
// torch.autocast.
#pragma once

#include <optional>

#include <ATen/core/Tensor.h>

namespace cpprun::optim {

struct AutocastOptions {
  std::optional<at::ScalarType> dtype = {};  // default: bfloat16 on CPU, float16 on CUDA
  bool enabled = true;
  std::optional<bool> cache_enabled = {};  // keep casts of weights; default: as it is now
};

class Autocast {
 public:
  // Where it can't work (no GPU, a dtype that is neither float16 nor bfloat16) it warns and does
  // nothing, as Python does. Throws std::invalid_argument for a device without autocast.
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
