// SyncBatchNorm in a world of one, and the modules that the converter accepts and rejects.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>
#include <stdexcept>

#include "cpprun/nn/sync_batch_norm.hpp"
#include "tests/sdk/nn/nets.hpp"

namespace cpprun::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::ThrowsMessage;

TEST(SyncBatchNorm, AloneItIsBatchNorm) {
  nn::SyncBatchNorm sync(torch::nn::BatchNormOptions(3));
  torch::nn::BatchNorm2d plain(3);
  const at::Tensor x = torch::randn({4, 3, 5, 5});
  EXPECT_TRUE(sync(x).equal(plain(x)));
  EXPECT_TRUE(sync->running_var.equal(plain->running_var));
  EXPECT_EQ(sync->num_batches_tracked.item<int64_t>(), 1);
  sync->eval();
  plain->eval();
  EXPECT_TRUE(sync(x).equal(plain(x)));
}

TEST(SyncBatchNorm, NamesAWrongShape) {
  nn::SyncBatchNorm sync(3);
  EXPECT_THAT(
      [&] {
        sync(torch::zeros({4, 2}));
      },
      ThrowsMessage<std::invalid_argument>(AllOf(HasSubstr("[4, 2]"), HasSubstr("3 long"))));
}

TEST(SyncBatchNorm, PrintsItsOptions) {
  std::ostringstream text;
  text << nn::SyncBatchNorm(3);
  EXPECT_THAT(text.str(), HasSubstr("SyncBatchNorm(3, eps=1e-05, momentum=0.1"));
}

struct Body : torch::nn::Module {
  Body() {
    layers = register_module("layers", torch::nn::Sequential());
    layers->push_back(torch::nn::Conv2d(torch::nn::Conv2dOptions(3, 4, 3)));
    layers->push_back("norm", torch::nn::BatchNorm2d(4));
  }
  torch::nn::Sequential layers{nullptr};
};

TEST(ConvertSyncBatchNorm, SwapsInSequentials) {
  auto net = std::make_shared<Body>();
  const auto old = std::dynamic_pointer_cast<torch::nn::BatchNorm2dImpl>(net->layers->ptr(1));
  nn::convert_sync_batchnorm(net);
  const auto now = std::dynamic_pointer_cast<nn::SyncBatchNormImpl>(net->layers->ptr(1));
  EXPECT_TRUE(now->weight.is_same(old->weight));
  EXPECT_TRUE(now->running_mean.is_same(old->running_mean));
  EXPECT_EQ(net->named_modules()["layers.norm"], now);
  EXPECT_EQ(net->layers->forward(torch::randn({2, 3, 6, 6})).size(1), 4);
  EXPECT_EQ(old->num_batches_tracked.item<int64_t>(), 1);
}

TEST(ConvertSyncBatchNorm, AFrozenLayerStaysFrozen) {
  torch::nn::BatchNorm1d norm(4);
  norm->weight.requires_grad_(false);
  norm->eval();
  const auto sync = nn::convert_sync_batchnorm(norm.ptr());
  EXPECT_FALSE(sync->named_parameters()["weight"].requires_grad());
  EXPECT_TRUE(sync->named_parameters()["bias"].requires_grad());
  EXPECT_FALSE(sync->is_training());
}

TEST(ConvertSyncBatchNorm, NamesMembersAndChangesNothing) {
  struct Outer : torch::nn::Module {
    Outer() {
      normed = register_module("normed", std::make_shared<Normed>());
      list = register_module("list", torch::nn::Sequential(torch::nn::BatchNorm1d(2)));
    }
    std::shared_ptr<Normed> normed;
    torch::nn::Sequential list;
  };
  auto outer = std::make_shared<Outer>();
  EXPECT_THAT([&] { nn::convert_sync_batchnorm(outer); },
              ThrowsMessage<std::invalid_argument>(
                  AllOf(HasSubstr("normed.norm"), HasSubstr("torch::nn::Sequential"))));
  EXPECT_NE(dynamic_cast<torch::nn::BatchNorm1dImpl*>(outer->list->ptr(0).get()), nullptr);
}

}  // namespace
}  // namespace cpprun::test
