// A small residual net: a grey image in, 11 logits out.
//
// It uses GroupNorm instead of ResNet's BatchNorm, whose result depends on which samples share a
// batch. So the net trains the same on one worker and on many.
#pragma once

#include <torch/torch.h>

namespace ranzcr {

inline torch::nn::Conv2d conv(int64_t in, int64_t out, int64_t side, int64_t stride) {
  return torch::nn::Conv2d(
      torch::nn::Conv2dOptions(in, out, side).stride(stride).padding(side / 2).bias(false));
}
inline torch::nn::GroupNorm norm(int64_t channels) {
  return torch::nn::GroupNorm(torch::nn::GroupNormOptions(8, channels));
}

// Two convolutions with a shortcut around them.
struct BlockImpl : torch::nn::Module {
  BlockImpl(int64_t in, int64_t out, int64_t stride) {
    register_module("conv1", conv1 = conv(in, out, 3, stride));
    register_module("norm1", norm1 = norm(out));
    register_module("conv2", conv2 = conv(out, out, 3, 1));
    register_module("norm2", norm2 = norm(out));
    if (in != out || stride != 1) register_module("around", around = conv(in, out, 1, stride));
  }
  at::Tensor forward(const at::Tensor& x) {
    const auto inner = norm2(conv2(torch::relu(norm1(conv1(x)))));
    return torch::relu(inner + (around.is_empty() ? x : around(x)));
  }
  torch::nn::Conv2d conv1{nullptr}, conv2{nullptr}, around{nullptr};
  torch::nn::GroupNorm norm1{nullptr}, norm2{nullptr};
};
TORCH_MODULE(Block);

struct ResidualNetImpl : torch::nn::Module {
  explicit ResidualNetImpl(int64_t labels) {
    register_module("stem", stem = conv(1, 16, 3, 2));
    register_module("norm", first_norm = norm(16));
    // One statement each: the evaluation order of arguments is unspecified, and the random initial
    // weights depend on it.
    blocks->push_back(Block(16, 16, 1));
    blocks->push_back(Block(16, 32, 2));
    blocks->push_back(Block(32, 64, 2));
    register_module("blocks", blocks);
    register_module("head", head = torch::nn::Linear(64, labels));
  }
  // Maps n x 1 x side x side to n x labels.
  at::Tensor forward(const at::Tensor& images) {
    const auto x = blocks->forward(torch::relu(first_norm(stem(images))));
    return head(x.mean({2, 3}));
  }
  torch::nn::Conv2d stem{nullptr};
  torch::nn::GroupNorm first_norm{nullptr};
  torch::nn::Sequential blocks;
  torch::nn::Linear head{nullptr};
};
TORCH_MODULE(ResidualNet);

}  // namespace ranzcr
