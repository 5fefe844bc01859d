#include "bench/ddp/models.hpp"

namespace cpprun::bench {
namespace {

namespace nn = torch::nn;

struct Mlp : Net {
  Mlp(int64_t inputs, int64_t width, int layers) {
    for (int i = 0; i < layers; ++i) {
      stack->push_back(nn::Linear(i == 0 ? inputs : width, width));
      stack->push_back(nn::ReLU());
    }
    stack->push_back(nn::Linear(width, 10));
    register_module("stack", stack);
  }
  torch::Tensor forward(torch::Tensor input) override { return stack->forward(input); }

  nn::Sequential stack;
};

// Registers its members in Python's order, so that the seed gives the same weights.
struct Conv : Net {
  Conv() {
    conv1 = register_module("conv1", nn::Conv2d(nn::Conv2dOptions(1, 32, 3)));
    conv2 = register_module("conv2", nn::Conv2d(nn::Conv2dOptions(32, 64, 3)));
    fc1 = register_module("fc1", nn::Linear(9216, 128));
    fc2 = register_module("fc2", nn::Linear(128, 10));
  }
  torch::Tensor forward(torch::Tensor input) override {
    auto x = torch::relu(conv1(input));
    x = torch::max_pool2d(torch::relu(conv2(x)), 2);
    return fc2(torch::relu(fc1(torch::flatten(x, 1))));
  }

  nn::Conv2d conv1{nullptr}, conv2{nullptr};
  nn::Linear fc1{nullptr}, fc2{nullptr};
};

}  // namespace

Model make_model(const std::string& name) {
  if (name == "mlp") return {std::make_shared<Mlp>(1024, 2100, 5), {1024}};
  if (name == "conv") return {std::make_shared<Conv>(), {1, 28, 28}};
  if (name == "tiny") return {std::make_shared<Mlp>(32, 32, 12), {32}};
  throw std::invalid_argument("no model " + name + ": mlp, conv or tiny");
}

}  // namespace cpprun::bench
