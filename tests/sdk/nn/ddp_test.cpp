// DistributedDataParallel in a world of one process: options, access, outputs, gradients.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>
#include <map>
#include <optional>
#include <stdexcept>
#include <tuple>

#include "cpprun/nn/parallel/distributed_data_parallel.hpp"
#include "cpprun/nn/parallel/verify_model.hpp"
#include "cpprun/optim/clip_grad.hpp"
#include "tests/sdk/nn/ddp_alone.hpp"
#include "tests/sdk/nn/nets.hpp"

namespace cpprun::test {
namespace {

namespace parallel = nn::parallel;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;

using DdpDeviceMismatch = DdpAlone;
using DdpAccess = DdpAlone;
using DdpOptionsTest = DdpAlone;
using DdpOutputs = DdpAlone;
using DdpZeroGrad = DdpAlone;
using DdpHooks = DdpAlone;
using DdpBuckets = DdpAlone;

parallel::DdpOptions on_devices(std::vector<int> ids) {
  parallel::DdpOptions options;
  options.device_ids = std::move(ids);
  return options;
}

template <class Net = Mlp>
void wrap(const parallel::DdpOptions& options) {
  parallel::DistributedDataParallel ddp(std::make_shared<Net>(), options);
}

TEST_F(DdpDeviceMismatch, CpuModuleTakesNoDevice) {
  EXPECT_THAT([] { wrap(on_devices({0})); }, ThrowsMessage<std::invalid_argument>(AllOf(
                                                 HasSubstr("cuda:0"), HasSubstr("are on cpu"))));
}

TEST_F(DdpDeviceMismatch, RejectsAnOutputDeviceAlone) {
  parallel::DdpOptions options;
  options.output_device = 1;
  EXPECT_THAT([&] { wrap(options); }, ThrowsMessage<std::invalid_argument>(HasSubstr("cuda:1")));
}

TEST_F(DdpDeviceMismatch, OneProcessHasOneDevice) {
  EXPECT_THAT(
      [] {
        wrap(on_devices({0, 1}));
      },
      ThrowsMessage<std::invalid_argument>(HasSubstr("[0, 1]")));
}

TEST_F(DdpDeviceMismatch, RejectsMixedDeviceTypes) {
  struct Mixed : torch::nn::Module {
    Mixed() {
      register_parameter("here", torch::zeros({1}));
      register_parameter("nowhere", torch::zeros({1}, at::kMeta));
    }
    at::Tensor forward(const at::Tensor& x) { return x; }
  };
  EXPECT_THAT([] { wrap<Mixed>({}); },
              ThrowsMessage<std::invalid_argument>(HasSubstr("cpu, meta")));
}

TEST_F(DdpDeviceMismatch, NamesTheExpectedGpu) {
  if (torch::cuda::device_count() < 1) GTEST_SKIP() << "there is no GPU";
  auto net = std::make_shared<Mlp>();
  net->to(at::kCUDA);
  EXPECT_THAT(
      [&] { parallel::DistributedDataParallel ddp(net, on_devices({7})); },
      ThrowsMessage<std::invalid_argument>(AllOf(HasSubstr("cuda:7"), HasSubstr("cuda:0"))));
}

struct WithAttribute : Mlp {
  int answer = 42;
};
struct HolderNetImpl : Mlp {};
TORCH_MODULE(HolderNet);

TEST_F(DdpAccess, OwnAttributesThroughModule) {
  parallel::DistributedDataParallel ddp(std::make_shared<WithAttribute>());
  EXPECT_EQ(ddp.module().answer, 42);
  ddp.module().answer = 43;
  EXPECT_EQ(ddp.ptr()->answer, 43);
  EXPECT_EQ(ddp->module().first->weight.size(0), 32);
}

// How a LibTorch program calls a module in a holder: it must not bypass the averaging.
TEST_F(DdpAccess, ArrowAccessesTheWrapperLikeAHolder) {
  parallel::DistributedDataParallel ddp(std::make_shared<Mlp>());
  int sums = 0;
  ddp.register_comm_hook({"counts", [&](parallel::GradBucket& bucket) -> parallel::HookResult {
                            ++sums;
                            return bucket.buffer();
                          }});
  for (int step = 1; step <= 3; ++step) {
    ddp->forward(torch::ones({2, 12})).sum().backward();
    EXPECT_EQ(sums, step);
  }
}

TEST_F(DdpAccess, AcceptsModuleHolders) {
  parallel::DistributedDataParallel<HolderNetImpl> ddp(HolderNet{});
  EXPECT_EQ(ddp(torch::zeros({2, 12})).sizes(), (std::vector<int64_t>{2, 4}));
}

TEST_F(DdpAccess, ParameterNamesMatchTheModule) {
  parallel::DistributedDataParallel ddp(std::make_shared<Mlp>());
  EXPECT_THAT(ddp.core().parameter_names(),
              ElementsAre("first.weight", "first.bias", "second.weight", "second.bias",
                          "third.weight", "third.bias"));
}

// One weight under two names.
struct Tied : torch::nn::Module {
  Tied() {
    weight = register_parameter("in", torch::ones({1}));
    register_parameter("out", weight);
  }
  at::Tensor forward(const at::Tensor& x) { return weight * x; }
  at::Tensor weight;
};

// As in Python. Stepped twice it would be 0.71.
TEST_F(DdpAccess, TiedParametersAreListedAndSteppedOnce) {
  parallel::DistributedDataParallel ddp(std::make_shared<Tied>());
  EXPECT_EQ(ddp.parameters().size(), 1U);
  torch::optim::SGD sgd(ddp.parameters(), torch::optim::SGDOptions(0.1).momentum(0.9));
  ddp(torch::ones({1})).sum().backward();
  EXPECT_FLOAT_EQ(optim::clip_grad_norm_(ddp.parameters(), 10).item<float>(), 1);
  sgd.step();
  EXPECT_FLOAT_EQ(ddp.module().weight.item<float>(), 0.9F);
}

TEST_F(DdpAccess, ParametersAreTheModules) {
  parallel::DdpOptions options;
  options.ignored_parameters = {"second.weight"};
  parallel::DistributedDataParallel ddp(std::make_shared<Mlp>(), options);
  const auto all = ddp.module().parameters();
  ASSERT_EQ(ddp.parameters().size(), all.size());
  for (size_t i = 0; i < all.size(); ++i) EXPECT_TRUE(ddp.parameters()[i].is_same(all[i]));
}

TEST_F(DdpOptionsTest, RejectsAModuleWithoutGradients) {
  auto net = std::make_shared<Mlp>();
  for (auto& parameter : net->parameters()) parameter.requires_grad_(false);
  EXPECT_THAT([&] { parallel::DistributedDataParallel ddp(net); },
              ThrowsMessage<std::invalid_argument>(HasSubstr("requires a gradient")));
}

TEST_F(DdpOptionsTest, IgnoredParametersAreNotReduced) {
  parallel::DdpOptions options;
  options.ignored_parameters = {"second.weight", "third.bias"};
  parallel::DistributedDataParallel ddp(std::make_shared<Mlp>(), options);
  EXPECT_THAT(ddp.core().parameter_names(),
              ElementsAre("first.weight", "first.bias", "second.bias", "third.weight"));
}

TEST_F(DdpOptionsTest, TiedWeightsCountOnce) {
  auto net = std::make_shared<Mlp>();
  net->register_parameter("tied", net->first->weight);
  parallel::DistributedDataParallel ddp(net);
  EXPECT_THAT(ddp.core().parameter_names(),
              ElementsAre("tied", "first.bias", "second.weight", "second.bias", "third.weight",
                          "third.bias"));
}

TEST_F(DdpOptionsTest, LoggingDataHasPythonsNames) {
  parallel::DdpOptions options;
  options.gradient_as_bucket_view = true;
  parallel::DistributedDataParallel ddp(std::make_shared<Mlp>(), options);
  const auto data = ddp.logging_data();
  EXPECT_THAT(data, testing::Contains(testing::Pair("world_size", "1")));
  EXPECT_THAT(data, testing::Contains(testing::Pair("gradient_as_bucket_view", "1")));
  EXPECT_THAT(data, testing::Contains(testing::Pair("backend_name", testing::_)));
}

struct Own {
  at::Tensor inner;
};
template <class Visit>
void visit_tensors(Own& own, Visit&& visit) {
  visit(own.inner);
}
struct Opaque {
  at::Tensor inner;
};

TEST_F(DdpOutputs, FindsTensorsInNestedOutputs) {
  std::tuple<at::Tensor, std::vector<at::Tensor>, std::map<std::string, at::Tensor>, Own,
             std::optional<at::Tensor>, int, std::string>
      all{torch::full({1}, 1),
          {torch::full({1}, 2), at::Tensor()},
          {{"k", torch::full({1}, 3)}},
          {torch::full({1}, 4)},
          torch::full({1}, 5),
          6,
          "seven"};
  std::vector<double> found;
  parallel::for_each_tensor(all, [&](at::Tensor& t) { found.push_back(t.item<double>()); });
  EXPECT_THAT(found, ElementsAre(1, 2, 3, 4, 5));
  EXPECT_TRUE(parallel::kIsOpaque<Opaque>);
  EXPECT_FALSE(parallel::kIsOpaque<Own>);
}

struct OpaqueNet : Mlp {
  Opaque forward(const at::Tensor& x) { return {Mlp::forward(x)}; }
};

TEST_F(DdpOutputs, AnOpaqueOutputFailsOnlyWhenNeeded) {
  parallel::DistributedDataParallel plain(std::make_shared<OpaqueNet>());
  plain(torch::ones({2, 12})).inner.sum().backward();
  EXPECT_TRUE(plain.module().first->weight.grad().defined());
  parallel::DdpOptions options;
  options.find_unused_parameters = true;
  parallel::DistributedDataParallel ddp(std::make_shared<OpaqueNet>(), options);
  EXPECT_THAT(
      [&] {
        ddp(torch::ones({2, 12}));
      },
      ThrowsMessage<std::invalid_argument>(AllOf(HasSubstr("Opaque"), HasSubstr("visit_tensors"))));
}

struct TwoHeads : Branches {
  std::map<std::string, at::Tensor> forward(const at::Tensor& x) {
    const at::Tensor inner = body(x);
    return {{"left", left(inner)}, {"right", right(inner)}};
  }
};

TEST_F(DdpOutputs, AcceptsAnOutputThatTheLossIgnores) {
  parallel::DdpOptions options;
  options.find_unused_parameters = true;
  parallel::DistributedDataParallel ddp(std::make_shared<TwoHeads>(), options);
  for (int step = 0; step < 3; ++step) {
    ddp.zero_grad();
    ddp(torch::ones({2, 12}))["left"].sum().backward();
    EXPECT_TRUE(ddp.module().left->weight.grad().defined());
    EXPECT_FALSE(ddp.module().right->weight.grad().defined());
    EXPECT_FALSE(ddp.module().never->weight.grad().defined());
  }
}

TEST_F(DdpZeroGrad, RightWithViews) {
  parallel::DdpOptions options;
  options.gradient_as_bucket_view = true;
  parallel::DistributedDataParallel ddp(std::make_shared<Mlp>(), options);
  const at::Tensor x = torch::ones({2, 12});
  ddp(x).sum().backward();
  ddp(x).sum().backward();
  const at::Tensor twice = ddp.module().first->weight.grad().clone();
  ddp.zero_grad(/*set_to_none=*/false);
  EXPECT_EQ(ddp.module().first->weight.grad().abs().sum().item<double>(), 0);
  ddp(x).sum().backward();
  EXPECT_TRUE(torch::allclose(ddp.module().first->weight.grad() * 2, twice));
  ddp.zero_grad();
  EXPECT_FALSE(ddp.module().first->weight.grad().defined());
}

TEST_F(DdpHooks, AllowsOneNonEmptyHook) {
  parallel::DistributedDataParallel ddp(std::make_shared<Mlp>());
  EXPECT_THROW(ddp.register_comm_hook({"empty", nullptr}), std::invalid_argument);
  ddp.register_comm_hook(parallel::allreduce_hook());
  EXPECT_THAT([&] { ddp.register_comm_hook(parallel::bf16_compress_hook()); },
              ThrowsMessage<std::invalid_argument>(HasSubstr("allreduce_hook")));
}

TEST_F(DdpHooks, PowerSgdStartsAfterTheBucketsAreRebuilt) {
  EXPECT_THAT([] { parallel::power_sgd_hook({.start_power_sgd_iter = 1}); },
              ThrowsMessage<std::invalid_argument>(HasSubstr("at least 2")));
}

TEST_F(DdpHooks, WaitsForFutures) {
  parallel::DistributedDataParallel ddp(std::make_shared<Mlp>());
  ddp.register_comm_hook({"future", [](parallel::GradBucket& bucket) -> parallel::HookResult {
                            return std::async(std::launch::deferred,
                                              [buffer = bucket.buffer()] { return buffer * 3; });
                          }});
  ddp(torch::ones({1, 12})).sum().backward();
  EXPECT_THAT(
      ddp.module().third->bias.grad(),
      testing::ResultOf([](const at::Tensor& t) { return t.eq(3).all().item<bool>(); }, true));
}

struct OneOfTwo : Branches {
  at::Tensor forward(const at::Tensor& x) { return left(body(x)); }
};

// A snapshot asks for the buckets, perhaps before the next forward rebuilds them.
TEST_F(DdpBuckets, NamesUnusedParameters) {
  parallel::DistributedDataParallel ddp(std::make_shared<OneOfTwo>());
  ddp(torch::ones({2, 12})).sum().backward();
  EXPECT_THAT([&] { ddp.core().buckets(); },
              ThrowsMessage<parallel::UnusedParametersError>(HasSubstr("right.weight")));
}

TEST(VerifyModel, FirstDifferenceNamesBothRanks) {
  EXPECT_EQ(parallel::first_difference({"a", "b"}, 0, {"a", "c"}, 4), "rank 0 has b, rank 4 has c");
  EXPECT_EQ(parallel::first_difference({"a"}, 1, {"a", "c"}, 2),
            "rank 1 has nothing more, rank 2 has c");
}

}  // namespace
}  // namespace cpprun::test
