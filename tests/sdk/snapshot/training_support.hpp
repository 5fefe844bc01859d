// A small training with everything that a snapshot stores: dropout, momentum, a schedule, a
// shuffled sampler.
#pragma once

#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/dropout.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/adagrad.h>
#include <torch/optim/adam.h>
#include <torch/optim/adamw.h>
#include <torch/optim/lbfgs.h>
#include <torch/optim/rmsprop.h>
#include <torch/optim/sgd.h>
#include <torch/types.h>

#include <memory>
#include <stdexcept>
#include <string>

#include "common/hash.hpp"

namespace cpprun::test {

struct Net : torch::nn::Module {
  explicit Net(double dropout = 0.3, bool has_more = false) : drop(dropout) {
    register_module("first", first);
    if (has_more) more = register_module("between", torch::nn::Linear(16, 16));
    register_module("norm", norm);
    register_module("drop", drop);
    register_module("last", last);
  }
  at::Tensor forward(const at::Tensor& inputs) {
    auto x = first(inputs);
    if (more) x = more(torch::relu(x));
    return last(drop(torch::relu(norm(x))));
  }
  torch::nn::Linear first{8, 16}, more{nullptr}, last{16, 1};
  torch::nn::BatchNorm1d norm{16};
  torch::nn::Dropout drop;
};

inline std::shared_ptr<Net> make_net(double dropout = 0.3, bool has_more = false) {
  torch::manual_seed(1);
  return std::make_shared<Net>(dropout, has_more);
}

inline std::unique_ptr<torch::optim::Optimizer> make_optimizer(const std::string& kind,
                                                               std::vector<at::Tensor> parameters) {
  using namespace torch::optim;
  if (kind == "sgd") {
    return std::make_unique<SGD>(parameters, SGDOptions(0.01).momentum(0.9).nesterov(true));
  }
  if (kind == "adam") return std::make_unique<Adam>(parameters, AdamOptions(0.01).amsgrad(true));
  if (kind == "adamw") return std::make_unique<AdamW>(parameters, AdamWOptions(0.01));
  if (kind == "adagrad") return std::make_unique<Adagrad>(parameters, AdagradOptions(0.01));
  if (kind == "rmsprop") {
    return std::make_unique<RMSprop>(parameters, RMSpropOptions(0.01).momentum(0.5).centered(true));
  }
  if (kind == "lbfgs") return std::make_unique<LBFGS>(parameters, LBFGSOptions(0.1).max_iter(3));
  throw std::invalid_argument("no optimizer " + kind);
}

constexpr int64_t kSamples = 96;

struct Data {
  Data() {
    torch::manual_seed(2);
    inputs = torch::randn({kSamples, 8});
    targets = inputs.sum(1, /*keepdim=*/true) * 0.5 + 1;
  }
  at::Tensor inputs, targets;
};

// Hashes all parameters, and the buffers, which may differ between ranks.
inline std::string fingerprint(const torch::nn::Module& module, bool has_buffers = true) {
  uint64_t hash = kFnvBasis;
  const auto add = [&hash](const at::Tensor& tensor) {
    const auto whole = tensor.detach().cpu().contiguous();
    hash = fnv1a({static_cast<const std::byte*>(whole.data_ptr()), whole.nbytes()}, hash);
  };
  for (const auto& each : module.parameters()) add(each);
  if (!has_buffers) return std::to_string(hash);
  for (const auto& each : module.buffers()) add(each);
  return std::to_string(hash);
}

}  // namespace cpprun::test
