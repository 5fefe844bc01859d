// A hash of a module's state.
#pragma once

#include <cstdint>
#include <cstdio>
#include <string>

#include <torch/nn/module.h>

namespace examples {

// Sixteen digits; equal if and only if all parameters and buffers are equal bit for bit (up to
// collisions).
inline std::string hash_of(const torch::nn::Module& module) {
  uint64_t hash = 0xcbf29ce484222325;  // FNV-1a
  const auto add = [&hash](const at::Tensor& tensor) {
    const auto whole = tensor.detach().cpu().contiguous();
    const auto* bytes = static_cast<const unsigned char*>(whole.data_ptr());
    for (size_t i = 0; i < whole.nbytes(); ++i) hash = (hash ^ bytes[i]) * 0x100000001b3;
  };
  for (const auto& item : module.named_parameters()) add(item.value());
  for (const auto& item : module.named_buffers()) add(item.value());
  char text[17];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(hash));
  return text;
}

}  // namespace examples
