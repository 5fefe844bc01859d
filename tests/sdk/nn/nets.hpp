// The nets and data of the DDP tests, the same as those of twins/ddp_nets.py: same seeds, same
// order of creation, so the same numbers.
#pragma once

#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>

#include <torch/torch.h>

#include "common/hash.hpp"

namespace cpprun::test {

struct Mlp : torch::nn::Module {
  Mlp() {
    first = register_module("first", torch::nn::Linear(12, 32));
    second = register_module("second", torch::nn::Linear(32, 24));
    third = register_module("third", torch::nn::Linear(24, 4));
  }
  at::Tensor forward(const at::Tensor& x) {
    return third(torch::relu(second(torch::relu(first(x)))));
  }
  torch::nn::Linear first{nullptr}, second{nullptr}, third{nullptr};
};

// The caller chooses the head; `never` takes no part at all.
struct Branches : torch::nn::Module {
  Branches() {
    body = register_module("body", torch::nn::Linear(12, 16));
    left = register_module("left", torch::nn::Linear(16, 4));
    right = register_module("right", torch::nn::Linear(16, 4));
    never = register_module("never", torch::nn::Linear(16, 4));
  }
  at::Tensor forward(const at::Tensor& x, bool goes_left) {
    const at::Tensor inner = torch::relu(body(x));
    return goes_left ? left(inner) : right(inner);
  }
  torch::nn::Linear body{nullptr}, left{nullptr}, right{nullptr}, never{nullptr};
};

struct Normed : torch::nn::Module {
  Normed() {
    first = register_module("first", torch::nn::Linear(12, 16));
    norm = register_module("norm", torch::nn::BatchNorm1d(16));
    second = register_module("second", torch::nn::Linear(16, 4));
  }
  at::Tensor forward(const at::Tensor& x) { return second(torch::relu(norm(first(x)))); }
  torch::nn::Linear first{nullptr}, second{nullptr};
  torch::nn::BatchNorm1d norm{nullptr};
};

struct Batch {
  at::Tensor x, y;
};

// An endless stream of batches, another one for each rank. The numbers are the same on each device.
class Batches {
 public:
  explicit Batches(int rank, at::Device device = at::kCPU)
      : generator_(at::detail::createCPUGenerator(static_cast<uint64_t>(1000 + rank))),
        device_(device) {}
  Batch next(int64_t size = 8) {
    at::Tensor x = torch::randn({size, 12}, generator_);
    at::Tensor y = torch::randn({size, 4}, generator_);
    return {x.to(device_), y.to(device_)};
  }

 private:
  at::Generator generator_;
  at::Device device_;
};

// FNV-1a over the bytes of all parameters and buffers.
inline uint64_t hash_of(const torch::nn::Module& module) {
  uint64_t hash = kFnvBasis;
  const auto add = [&](const at::Tensor& tensor) {
    const at::Tensor flat = tensor.detach().cpu().contiguous();
    hash = fnv1a({static_cast<const std::byte*>(flat.data_ptr()), flat.nbytes()}, hash);
  };
  for (const at::Tensor& parameter : module.parameters()) add(parameter);
  for (const at::Tensor& buffer : module.buffers()) add(buffer);
  return hash;
}

// One whole line in one write, so that ranks' lines don't mix.
inline void print_line(const std::string& line) {
  std::fputs((line + "\n").c_str(), stdout);
  std::fflush(stdout);
}

inline std::string digits(double value) {
  char text[64];
  std::snprintf(text, sizeof text, "%.17g", value);
  return text;
}

}  // namespace cpprun::test
