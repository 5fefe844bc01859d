// How often the same text, and how many different ones, are said.
#include "rendezvous/server/seldom.hpp"

#include <gtest/gtest.h>

namespace cpprun::test {
namespace {

using namespace std::chrono_literals;

const Instant kBegin = Instant::from_nanoseconds(1'000'000'000);

TEST(Seldom, TheSameTextOnceAMinute) {
  Seldom texts;
  EXPECT_TRUE(texts.may_say(kBegin, "a"));
  EXPECT_FALSE(texts.may_say(kBegin + 1s, "a"));
  EXPECT_TRUE(texts.may_say(kBegin + 1s, "b"));
  EXPECT_FALSE(texts.may_say(kBegin + 59s, "a"));
  EXPECT_TRUE(texts.may_say(kBegin + 60s, "a"));
}

TEST(Seldom, DifferentOnesAreBoundedToo) {
  Seldom texts;
  size_t said = 0;
  for (int i = 0; i < 1000; ++i) said += texts.may_say(kBegin, std::to_string(i)) ? 1 : 0;
  EXPECT_EQ(said, limits::kRefusalsSaid);
  EXPECT_TRUE(texts.may_say(kBegin + 1min, "another"));
}

}  // namespace
}  // namespace cpprun::test
