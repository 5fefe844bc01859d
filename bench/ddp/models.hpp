// The three nets of the comparison; make_model() in ddp_bench.py has the same layers.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <torch/torch.h>

namespace cpprun::bench {

struct Net : torch::nn::Module {
  virtual torch::Tensor forward(torch::Tensor input) = 0;
};

struct Model {
  std::shared_ptr<Net> net;
  std::vector<int64_t> sample;  // shape of one sample
};

// "mlp": 19.8 M parameters in 6 layers. "conv": PyTorch's MNIST example without dropout, 1.2 M.
// "tiny": 13 layers of 32 units, 13 k. Throws std::invalid_argument for any other name.
Model make_model(const std::string& name);

}  // namespace cpprun::bench
