// What StepUndo and UpdateWatch see of a step that has begun, and what StepUndo restores.
#include "cpprun/elastic/step_undo.hpp"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include "cpprun/data/distributed_sampler.hpp"
#include "cpprun/optim/fused.hpp"
#include "cpprun/optim/lr_schedulers.hpp"

namespace cpprun::detail {
namespace {

using Parameters = std::vector<at::Tensor>;

// Parameters with gradients.
Parameters parameters() {
  Parameters all{torch::ones({3}, torch::requires_grad()),
                 torch::ones({2}, torch::requires_grad())};
  for (at::Tensor& each : all) each.mutable_grad() = torch::ones_like(each);
  return all;
}

template <class Optimizer>
class UpdateOf : public ::testing::Test {};

using Optimizers = ::testing::Types<torch::optim::SGD, torch::optim::Adam, torch::optim::AdamW,
                                    torch::optim::Adagrad, torch::optim::RMSprop, optim::FusedSGD,
                                    optim::FusedAdam, optim::FusedAdamW>;
TYPED_TEST_SUITE(UpdateOf, Optimizers);

TYPED_TEST(UpdateOf, IsSeenInTheFirstAndInLaterSteps) {
  TypeParam optimizer(parameters(), 0.1);
  for (int i = 0; i < 2; ++i) {
    const UpdateWatch watch(optimizer);
    EXPECT_FALSE(watch.has_begun());
    optimizer.step();
    EXPECT_TRUE(watch.has_begun());
  }
}

TEST(StepUndo, RestoresBuffersValuesAndRandomNumbers) {
  torch::nn::BatchNorm1d net(4);
  torch::optim::AdamW optimizer(net->parameters(), 0.1);
  optim::StepLR scheduler(optimizer, {.step_size = 1});
  data::DistributedSampler sampler(100, {.num_replicas = 2, .rank = 0});
  at::Tensor tensor = torch::ones({2});
  int64_t number = 5;
  ElasticState state;
  state.track(net).track(optimizer).track(scheduler).track(sampler);
  state.track("tensor", tensor).track("number", number);
  sampler.next(10);
  const at::Tensor mean = net->running_mean.clone();

  StepUndo undo(state);
  const at::Tensor drawn = torch::rand({3});
  const auto indices = sampler.next(10);
  net->forward(torch::randn({8, 4})).sum().backward();
  tensor.fill_(3);
  number = 6;
  EXPECT_FALSE(undo.has_updated());
  EXPECT_FALSE(torch::equal(net->running_mean, mean));
  undo.restore();

  EXPECT_TRUE(torch::equal(net->running_mean, mean));
  EXPECT_TRUE(torch::equal(tensor, torch::ones({2})));
  EXPECT_EQ(number, 5);
  EXPECT_FALSE(net->weight.grad().defined());
  EXPECT_TRUE(torch::equal(torch::rand({3}), drawn));
  EXPECT_EQ(sampler.next(10), indices);
}

}  // namespace
}  // namespace cpprun::detail
