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

// Functions that count their calls, each with another slope.
class Counted {
 public:
  explicit Counted(size_t count) : calls(count, 0) {
    for (size_t i = 0; i < count; ++i) {
      functions.emplace_back([this, i](const at::Tensor& h) {
        ++calls[i];
        return torch::tanh(h * (1 + 0.1 * static_cast<double>(i)));
      });
    }
  }
  std::vector<int> calls;
  std::vector<TensorFunction> functions;
};

TEST(CheckpointSequentialTest, ComputesAllSegmentsButTheLastAgain) {
  const at::Tensor x = torch::tensor({0.3, -0.2}).requires_grad_();
  Counted plain(7);
  checkpoint_sequential(plain.functions, 1, x).sum().backward();
  EXPECT_EQ(plain.calls, std::vector<int>(7, 1));
  const at::Tensor expected = x.grad().clone();
  x.mutable_grad().zero_();
  Counted counted(7);
  const at::Tensor y = checkpoint_sequential(counted.functions, 3, x);
  EXPECT_EQ(counted.calls, std::vector<int>(7, 1));
  y.sum().backward();
  EXPECT_EQ(counted.calls, (std::vector<int>{2, 2, 2, 2, 1, 1, 1}));
  EXPECT_TRUE(at::equal(x.grad(), expected));
}

TEST(CheckpointSequentialTest, TakesASequentialAndKeepsItsModules) {
  torch::nn::Sequential model(torch::nn::Linear(3, 3), torch::nn::Dropout(0.5),
                              torch::nn::Linear(3, 2));
  const at::Tensor weight = model->at<torch::nn::LinearImpl>(0).weight;
  torch::manual_seed(1);
  at::Tensor y = checkpoint_sequential(model, 3, torch::ones({4, 3}));
  torch::manual_seed(1);
  const at::Tensor expected =
      torch::autograd::grad({model->forward(torch::ones({4, 3})).sum()}, {weight})[0];
  model = torch::nn::Sequential();
  y.sum().backward();
  EXPECT_TRUE(at::equal(weight.grad(), expected));
}

TEST(CheckpointSequentialTest, RefusesNumbersOfSegmentsThatDoNotFit) {
  Counted counted(2);
  for (const int64_t segments : {0, -1, 3}) {
    EXPECT_THROW(checkpoint_sequential(counted.functions, segments, torch::ones({1})),
                 std::invalid_argument);
  }
  EXPECT_EQ(counted.calls, (std::vector<int>{0, 0}));
}

}  // namespace
}  // namespace cpprun::utils::checkpoint
