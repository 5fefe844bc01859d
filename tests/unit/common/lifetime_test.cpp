#include "common/lifetime.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>

namespace cpprun {
namespace {

TEST(Lifetime, AGuardedCallbackGetsItsArguments) {
  const Lifetime lifetime;
  std::string got;
  const std::function<void(std::unique_ptr<int>, const std::string&)> call =
      lifetime.guard([&](std::unique_ptr<int> number, const std::string& text) {
        got = std::to_string(*number) + text;
      });
  call(std::make_unique<int>(7), "x");
  EXPECT_EQ(got, "7x");
}

TEST(Lifetime, AGuardedCallbackDoesNothingAfterTheObject) {
  std::optional<Lifetime> lifetime(std::in_place);
  int calls = 0;
  auto call = lifetime->guard([&] { ++calls; });
  auto copy = call;
  call();
  copy();
  EXPECT_EQ(calls, 2);
  lifetime.reset();
  call();
  copy();
  EXPECT_EQ(calls, 2);
}

}  // namespace
}  // namespace cpprun
