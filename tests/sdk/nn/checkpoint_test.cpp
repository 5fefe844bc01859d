// Activation checkpointing in one process.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "cpprun/nn/checkpoint.hpp"

namespace cpprun::utils::checkpoint {
namespace {

using Tensors = std::vector<at::Tensor>;

TEST(CheckpointTest, ComputesAgainInBackwardAndPutsRandomNumbersBack) {
  const at::Tensor x = torch::ones({1000}).requires_grad_();
  int computations = 0;
  Tensors masks;
  torch::manual_seed(1);
  const at::Tensor y = checkpoint(
      [&](const at::Tensor& h) {
        ++computations;
        masks.push_back(torch::dropout(torch::ones({1000}), 0.5, /*train=*/true));
        return h * masks.back();
      },
      x);
  EXPECT_EQ(computations, 1);
  const at::Tensor next = torch::rand({3});
  torch::manual_seed(1);
  torch::dropout(torch::ones({1000}), 0.5, true);
  EXPECT_TRUE(at::equal(next, torch::rand({3})));
  const at::Tensor state = at::detail::getDefaultCPUGenerator().get_state();
  y.sum().backward();
  EXPECT_EQ(computations, 2);
  EXPECT_TRUE(at::equal(masks[0], masks[1]));
  EXPECT_TRUE(at::equal(x.grad(), masks[0]));
  EXPECT_TRUE(at::equal(at::detail::getDefaultCPUGenerator().get_state(), state));
}

TEST(CheckpointTest, WithoutRandomStateMasksDiffer) {
  const at::Tensor x = torch::ones({1000}).requires_grad_();
  Tensors masks;
  const auto f = [&](const at::Tensor& h) {
    masks.push_back(torch::dropout(torch::ones({1000}), 0.5, true));
    return h * masks.back();
  };
  checkpoint(f, x, {.preserve_rng_state = false}).sum().backward();
  EXPECT_FALSE(at::equal(masks.at(0), masks.at(1)));
}

TEST(CheckpointTest, TakesSeveralTensorsAndInputsWithoutGradient) {
  const at::Tensor weight = torch::full({2}, 3.0).requires_grad_();
  const at::Tensor numbers = torch::tensor({1, 2});
  const Tensors outputs = checkpoint(
      [&](const Tensors& in) {
        return Tensors{weight * in[0], in[0] + 1, in[1]};
      },
      {numbers, torch::ones({2})});
  EXPECT_FALSE(outputs[1].requires_grad());
  (outputs[0].sum() * 2).backward();
  EXPECT_TRUE(at::equal(weight.grad(), torch::tensor({2.0F, 4.0F})));
}

TEST(CheckpointTest, NestsAndDoesNothingWithoutGradients) {
  const at::Tensor x = torch::full({1}, 2.0).requires_grad_();
  int computations = 0;
  const auto square = [&](const at::Tensor& h) {
    ++computations;
    return h * h;
  };
  const auto outer = [&](const at::Tensor& h) { return checkpoint(square, checkpoint(square, h)); };
  checkpoint(outer, x).backward();
  EXPECT_EQ(x.grad().item<double>(), 32);  // 4 x^3
  EXPECT_EQ(computations, 6);
  const at::NoGradGuard no_grad;
  EXPECT_FALSE(checkpoint(square, x).requires_grad());
  EXPECT_EQ(computations, 7);
}

}  // namespace
}  // namespace cpprun::utils::checkpoint
