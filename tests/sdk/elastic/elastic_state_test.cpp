// Which objects an ElasticState takes, and how it binds its samplers to a round.
#include "cpprun/elastic/elastic_state.hpp"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <stdexcept>

#include "cpprun/data/distributed_sampler.hpp"
#include "cpprun/dist/process_group.hpp"
#include "cpprun/optim/zero_redundancy_optimizer.hpp"

namespace cpprun {
namespace {

std::vector<at::Tensor> two_parameters() {
  return {torch::ones({3}, torch::requires_grad()), torch::ones({2}, torch::requires_grad())};
}

TEST(ElasticState, TracksEachObjectOnceUnderOneName) {
  torch::nn::Linear net(2, 2);
  int64_t one = 1, two = 2;
  ElasticState state;
  state.track(net).track("one", one);
  EXPECT_THROW(state.track("again", one), std::invalid_argument);
  EXPECT_THROW(state.track("one", two), std::invalid_argument);
}

TEST(ElasticState, RefusesOptimizersOfWhoseStateARankHasAPart) {
  const auto group = dist::init_process_group_or_single({.backend = "gloo"});
  ElasticState state;
  optim::ZeroRedundancyOptimizer<torch::optim::SGD> sharded(two_parameters(),
                                                            torch::optim::SGDOptions(0.1));
  EXPECT_THROW(state.track(sharded), std::invalid_argument);
  torch::optim::LBFGS searching(two_parameters(), torch::optim::LBFGSOptions(0.1));
  EXPECT_THROW(state.track(searching), std::invalid_argument);
}

TEST(ElasticState, BindsItsSamplersToARankAtTheirPosition) {
  data::DistributedSampler sampler(12, {.shuffle = false});
  ElasticState state;
  state.track(sampler);
  sampler.next(4);
  state.bind_samplers(2, 1);
  EXPECT_EQ(sampler.next(2), (std::vector<size_t>{5, 7}));
  state.bind_samplers(2, 1);
  EXPECT_EQ(sampler.next(2), (std::vector<size_t>{9, 11}));
  EXPECT_THROW(state.bind_samplers(2, 2), std::invalid_argument);
}

}  // namespace
}  // namespace cpprun
