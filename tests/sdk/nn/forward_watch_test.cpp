// Warns of gradients without a forward of DistributedDataParallel, and of no others.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cpprun/nn/parallel/distributed_data_parallel.hpp"
#include "tests/sdk/nn/ddp_alone.hpp"
#include "tests/sdk/nn/nets.hpp"

namespace cpprun::test {
namespace {

namespace parallel = nn::parallel;
using testing::AllOf;
using testing::HasSubstr;

using DdpForwardWatch = DdpAlone;

// The stderr output of `steps`.
template <class Steps>
std::string stderr_of(Steps steps) {
  testing::internal::CaptureStderr();
  steps();
  return testing::internal::GetCapturedStderr();
}

size_t count_warnings(const std::string& text) {
  size_t count = 0;
  for (size_t at = 0; (at = text.find("a gradient without a forward", at)) != std::string::npos;
       ++at) {
    ++count;
  }
  return count;
}

TEST_F(DdpForwardWatch, WarnsOnceAboutADirectForward) {
  parallel::DistributedDataParallel ddp(std::make_shared<Mlp>());
  const std::string text = stderr_of([&] {
    for (int step = 0; step < 3; ++step) {
      ddp.module().forward(torch::ones({2, 12})).sum().backward();
    }
  });
  EXPECT_EQ(count_warnings(text), 1U) << text;
  EXPECT_THAT(text, AllOf(HasSubstr("Mlp"), HasSubstr("not averaged"), HasSubstr("ddp(x)")));
}

TEST_F(DdpForwardWatch, AForwardAllowsOneBackward) {
  parallel::DistributedDataParallel ddp(std::make_shared<Mlp>());
  const at::Tensor x = torch::ones({2, 12});
  EXPECT_EQ(count_warnings(stderr_of([&] {
              for (int step = 0; step < 3; ++step) {
                const at::Tensor both = ddp(x).sum() + ddp.module().forward(x).sum();
                both.backward();
              }
            })),
            0U);
  EXPECT_EQ(count_warnings(stderr_of([&] { ddp.module().forward(x).sum().backward(); })), 1U);
}

TEST_F(DdpForwardWatch, DoesNotWarnOutsideTraining) {
  parallel::DistributedDataParallel ddp(std::make_shared<Mlp>());
  const at::Tensor x = torch::ones({2, 12});
  EXPECT_EQ(count_warnings(stderr_of([&] {
              const at::Tensor loss = ddp.module().forward(x).sum();
              torch::autograd::grad({loss}, ddp.parameters());  // accumulates nothing
              {
                const torch::NoGradGuard no_grad;
                ddp.module().forward(x);
              }
              const auto no_sync = ddp.no_sync();
              const at::Tensor first = ddp(x).sum(), second = ddp(x).sum();
              first.backward();
              second.backward();
            })),
            0U);
}

}  // namespace
}  // namespace cpprun::test
