// SGD, Adam and AdamW of torch::optim whose step is one call of LibTorch for all parameters of a
// group that have one type and device: Python's `fused=True`, with its numbers to the last bit.
// Beside torch::optim's own step they differ by rounding. One thread; gradients must be dense and
// real (LibTorch throws c10::Error for others).
//
// Options and state are torch::optim's, so snapshots, schedulers and GradScaler take them as they
// take SGD, Adam and AdamW, and a run may go from one form to the other. CPU and CUDA.
#pragma once

#include <torch/optim/adam.h>
#include <torch/optim/adamw.h>
#include <torch/optim/sgd.h>

namespace cpprun::optim {

class FusedSGD : public torch::optim::SGD {
 public:
  using SGD::SGD;
  at::Tensor step(LossClosure closure = nullptr) override;
};

class FusedAdam : public torch::optim::Adam {
 public:
  using Adam::Adam;
  at::Tensor step(LossClosure closure = nullptr) override;
};

class FusedAdamW : public torch::optim::AdamW {
 public:
  using AdamW::AdamW;
  at::Tensor step(LossClosure closure = nullptr) override;
};

}  // namespace cpprun::optim
