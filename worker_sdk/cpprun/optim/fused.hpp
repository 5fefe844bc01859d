/// @file
/// SGD, Adam and AdamW of torch::optim whose step makes one call of LibTorch for all parameters of
/// a group with the same dtype and device. Python counterpart: `fused=True`, with bitwise equal
/// results; torch::optim's own step() rounds differently. CPU and CUDA. One thread. Gradients must
/// be dense and real, else LibTorch throws c10::Error.
///
/// Options and state are those of torch::optim: snapshots, schedulers and GradScaler accept these
/// classes, and a run may resume with the fused class from the other's state and vice versa.
#pragma once

#include <torch/optim/adam.h>
#include <torch/optim/adamw.h>
#include <torch/optim/sgd.h>

namespace cpprun::optim {

/// torch::optim::SGD with Python's `fused=True`.
class FusedSGD : public torch::optim::SGD {
 public:
  using SGD::SGD;
  /// Updates all parameters that have a gradient. `closure`, if given, is called first, with
  /// gradients enabled; the result is its loss, else undefined.
  at::Tensor step(LossClosure closure = nullptr) override;
};

/// torch::optim::Adam with Python's `fused=True`.
class FusedAdam : public torch::optim::Adam {
 public:
  using Adam::Adam;
  /// As FusedSGD::step().
  at::Tensor step(LossClosure closure = nullptr) override;
};

/// torch::optim::AdamW with Python's `fused=True`.
class FusedAdamW : public torch::optim::AdamW {
 public:
  using AdamW::AdamW;
  /// As FusedSGD::step().
  at::Tensor step(LossClosure closure = nullptr) override;
};

}  // namespace cpprun::optim
