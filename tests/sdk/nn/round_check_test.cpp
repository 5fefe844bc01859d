// backward throws after the end of a round, behind all that it waits for; on a GPU: tests/gpu.
#include <gtest/gtest.h>
#include <torch/csrc/autograd/engine.h>
#include <torch/torch.h>

#include "cpprun/dist/errors.hpp"
#include "cpprun/dist/group/group_sockets.hpp"
#include "cpprun/nn/parallel/round_check.hpp"

namespace cpprun::nn::parallel {
namespace {

class RoundCheckTest : public ::testing::Test {
 protected:
  ~RoundCheckTest() override { dist::GroupSockets::forget(); }

  void backward() const { ((weight_ * 2).sum() + bias_.sum()).backward(); }

  at::Tensor weight_ = torch::ones({3}, at::requires_grad());
  at::Tensor bias_ = torch::ones({1}, at::requires_grad());
};

TEST_F(RoundCheckTest, ThrowsInEachBackwardAfterTheEndOfTheRound) {
  const RoundCheck check({weight_, bias_});
  EXPECT_NO_THROW(backward());
  dist::GroupSockets::shut_down();
  EXPECT_THROW(backward(), dist::DistNetworkError);
  EXPECT_THROW(backward(), dist::DistNetworkError);
  dist::GroupSockets::forget();
  EXPECT_NO_THROW(backward());
}

TEST_F(RoundCheckTest, ThrowsInABackwardThatReachesOneParameter) {
  const RoundCheck check({weight_, bias_});
  dist::GroupSockets::shut_down();
  EXPECT_THROW(bias_.sum().backward(), dist::DistNetworkError);
}

// As the Reducer's, which is queued when the last gradient is ready.
TEST_F(RoundCheckTest, FollowsCallbacksThatBackwardHasQueued) {
  const RoundCheck check({weight_, bias_});
  for (const at::Tensor& each : {weight_, bias_}) {
    each.register_hook([](const at::Tensor&) {
      torch::autograd::Engine::get_default_engine().queue_callback(
          [] { dist::GroupSockets::shut_down(); });
    });
  }
  EXPECT_THROW(backward(), dist::DistNetworkError);
}

TEST_F(RoundCheckTest, EndsWithTheObject) {
  { const RoundCheck check({weight_, bias_}); }
  dist::GroupSockets::shut_down();
  EXPECT_NO_THROW(backward());
}

}  // namespace
}  // namespace cpprun::nn::parallel
