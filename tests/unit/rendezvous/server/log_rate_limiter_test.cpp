// The limit for repetitions of a text, and for different texts.
#include "rendezvous/server/log_rate_limiter.hpp"

#include <gtest/gtest.h>

namespace cpprun::test {
namespace {

using namespace std::chrono_literals;

const Instant kBegin = Instant::from_nanoseconds(1'000'000'000);

TEST(LogRateLimiter, AllowsTheSameTextOnceAMinute) {
  LogRateLimiter texts;
  EXPECT_TRUE(texts.may_log(kBegin, "a"));
  EXPECT_FALSE(texts.may_log(kBegin + 1s, "a"));
  EXPECT_TRUE(texts.may_log(kBegin + 1s, "b"));
  EXPECT_FALSE(texts.may_log(kBegin + 59s, "a"));
  EXPECT_TRUE(texts.may_log(kBegin + 60s, "a"));
}

TEST(LogRateLimiter, LimitsDifferentTextsToo) {
  LogRateLimiter texts;
  size_t logged = 0;
  for (int i = 0; i < 1000; ++i) logged += texts.may_log(kBegin, std::to_string(i)) ? 1 : 0;
  EXPECT_EQ(logged, limits::kLogTextsKept);
  EXPECT_TRUE(texts.may_log(kBegin + 1min, "another"));
}

TEST(LogRateLimiter, CountsTheLinesOfAMinute) {
  using Line = LogRateLimiter::Line;
  LogRateLimiter lines;
  for (size_t i = 1; i < limits::kCoordinatorLogLines; ++i) {
    ASSERT_EQ(lines.next_line(kBegin), Line::Logged);
  }
  EXPECT_EQ(lines.next_line(kBegin + 1s), Line::LastOne);
  EXPECT_EQ(lines.next_line(kBegin + 59s), Line::LeftOut);
  EXPECT_EQ(lines.next_line(kBegin + 60s), Line::Logged);
}

}  // namespace
}  // namespace cpprun::test
