// GradScaler's order of calls and state; Autocast's scopes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/optim.h>

#include "cpprun/optim/autocast.hpp"
#include "cpprun/optim/grad_scaler.hpp"

namespace cpprun::optim {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

class Scaler : public ::testing::Test {
 protected:
  void backward(GradScaler& scaler, float factor = 1) {
    sgd_.zero_grad();
    scaler.scale(weight_ * factor).sum().backward();
  }

  at::Tensor weight_ = torch::ones({1}).requires_grad_();
  torch::optim::SGD sgd_{{weight_}, 1.0};
};

TEST_F(Scaler, NamesCallsOutOfOrder) {
  GradScaler scaler;
  EXPECT_THAT([&] { scaler.step(sgd_); },
              ThrowsMessage<std::logic_error>(HasSubstr("scale(loss)")));
  EXPECT_THROW(scaler.update(), std::logic_error);
  backward(scaler);
  EXPECT_THAT([&] { scaler.update(); },
              ThrowsMessage<std::logic_error>(HasSubstr("No inf checks")));
  scaler.unscale_(sgd_);
  EXPECT_THAT([&] { scaler.unscale_(sgd_); },
              ThrowsMessage<std::logic_error>(HasSubstr("already been called")));
  scaler.step(sgd_);
  EXPECT_THAT([&] { scaler.step(sgd_); },
              ThrowsMessage<std::logic_error>(HasSubstr("already been called")));
  EXPECT_THAT([&] { scaler.unscale_(sgd_); },
              ThrowsMessage<std::logic_error>(HasSubstr("after step")));
  scaler.update();
  backward(scaler);
  EXPECT_TRUE(scaler.step(sgd_));
}

TEST_F(Scaler, RejectsHalfGradients) {
  const at::Tensor half = torch::ones({1}, torch::kHalf).requires_grad_();
  torch::optim::SGD sgd({half}, 1.0);
  GradScaler scaler;
  scaler.scale(half.sum()).backward();
  EXPECT_THAT([&] { scaler.unscale_(sgd); },
              ThrowsMessage<std::invalid_argument>(HasSubstr("FP16")));
}

TEST_F(Scaler, AnInfinityInAGradientSkipsTheStep) {
  GradScaler scaler({.init_scale = 8});
  backward(scaler, INFINITY);
  EXPECT_FALSE(scaler.step(sgd_));
  scaler.update();
  EXPECT_EQ(weight_.item<float>(), 1);
  EXPECT_EQ(scaler.get_scale(), 4);
  backward(scaler);
  EXPECT_TRUE(scaler.step(sgd_));
  EXPECT_EQ(weight_.item<float>(), 0);
}

TEST_F(Scaler, RestoresItsState) {
  GradScaler scaler({.init_scale = 8, .growth_interval = 3});
  const auto train = [&](GradScaler& some) {
    backward(some);
    some.step(sgd_);
    some.update();
  };
  train(scaler);
  train(scaler);
  GradScaler other;
  other.load_state_dict(scaler.state_dict());
  EXPECT_EQ(other.state_dict(), scaler.state_dict());
  train(other);
  EXPECT_EQ(other.get_scale(), 16);
  other.load_state_dict(scaler.state_dict());  // now with tensors of its own
  train(other);
  EXPECT_EQ(other.get_scale(), 16);
  EXPECT_THROW(other.load_state_dict({}), std::invalid_argument);
  other.update(5.0);
  EXPECT_EQ(other.get_scale(), 5);
}

TEST_F(Scaler, DisabledScalerDoesNothing) {
  GradScaler scaler({.enabled = false});
  backward(scaler);
  scaler.unscale_(sgd_);
  EXPECT_TRUE(scaler.step(sgd_));
  scaler.update();
  EXPECT_EQ(weight_.item<float>(), 0);
  EXPECT_EQ(scaler.get_scale(), 1);
  EXPECT_TRUE(scaler.state_dict().empty());
}

TEST_F(Scaler, RejectsInvalidFactors) {
  EXPECT_THROW(GradScaler({.growth_factor = 1.0}), std::invalid_argument);
  EXPECT_THROW(GradScaler({.backoff_factor = 1.0}), std::invalid_argument);
}

class AutocastScopes : public ::testing::Test {
 protected:
  at::ScalarType product() const { return torch::mm(a_, a_).scalar_type(); }
  at::Tensor a_ = torch::randn({4, 4});
};

TEST_F(AutocastScopes, NestAndEnd) {
  EXPECT_EQ(product(), torch::kFloat);
  {
    const Autocast cast(at::kCPU);
    EXPECT_EQ(product(), torch::kBFloat16);
    {
      const Autocast off(at::kCPU, {.enabled = false});
      EXPECT_EQ(product(), torch::kFloat);
      const Autocast half(at::kCPU, {.dtype = torch::kHalf});
      EXPECT_EQ(product(), torch::kHalf);
    }
    EXPECT_EQ(product(), torch::kBFloat16);
  }
  EXPECT_EQ(product(), torch::kFloat);
}

TEST_F(AutocastScopes, EndWithAnException) {
  EXPECT_THROW(
      {
        const Autocast cast(at::kCPU);
        throw std::runtime_error("in the middle");
      },
      std::runtime_error);
  EXPECT_EQ(product(), torch::kFloat);
}

TEST_F(AutocastScopes, GradientsHaveTheWeightsType) {
  const at::Tensor weight = torch::randn({4, 4}).requires_grad_();
  at::Tensor loss;
  {
    const Autocast cast(at::kCPU);
    loss = torch::mm(a_, weight).sum();
  }
  loss.backward();
  EXPECT_EQ(weight.grad().scalar_type(), torch::kFloat);
}

TEST_F(AutocastScopes, UnsupportedDevicesDoNothing) {
  const Autocast wide(at::kCPU, {.dtype = torch::kDouble});
  EXPECT_EQ(product(), torch::kFloat);
  EXPECT_THROW(const Autocast none(at::kMeta), std::invalid_argument);
}

}  // namespace
}  // namespace cpprun::optim
