// When a coordinator judges by its deadlines, and when it reads its mail first.
#include "rendezvous/coordinator/patience.hpp"

#include <gtest/gtest.h>

namespace cpprun {
namespace {

using namespace std::chrono_literals;

constexpr Instant kDeadline = Instant::from_nanoseconds(1'000'000'000);

TEST(Patience, R11_whoever_is_on_time_judges_at_once) {
  Patience patience;
  EXPECT_EQ(patience.look_at(kDeadline), kDeadline);
  EXPECT_FALSE(patience.may_judge(kDeadline - 1ms, kDeadline));
  EXPECT_TRUE(patience.may_judge(kDeadline + 100ms, kDeadline));
}

TEST(Patience, R11_whoever_has_slept_reads_first) {
  Patience patience;
  Instant woken = kDeadline + 3s;
  EXPECT_FALSE(patience.may_judge(woken, kDeadline));
  EXPECT_EQ(patience.look_at(kDeadline), woken + Patience::kReadMailFirst);
  EXPECT_TRUE(patience.may_judge(woken + Patience::kReadMailFirst, kDeadline));
  EXPECT_EQ(patience.look_at(kDeadline), kDeadline);
}

// However much mail there is: the time to judge does not move with it.
TEST(Patience, R11_mail_that_keeps_coming_puts_nothing_off) {
  Patience patience;
  Instant woken = kDeadline + 3s;
  EXPECT_FALSE(patience.may_judge(woken, kDeadline));
  for (Duration after = 1ms; after < Patience::kReadMailFirst; after += 1ms) {
    EXPECT_FALSE(patience.may_judge(woken + after, kDeadline));
    EXPECT_EQ(patience.look_at(kDeadline), woken + Patience::kReadMailFirst);
  }
  EXPECT_TRUE(patience.may_judge(woken + Patience::kReadMailFirst, kDeadline));
}

TEST(Patience, R11_a_second_sleep_is_one_too) {
  Patience patience;
  EXPECT_FALSE(patience.may_judge(kDeadline + 3s, kDeadline));
  EXPECT_FALSE(patience.may_judge(kDeadline + 9s, kDeadline));
  EXPECT_TRUE(patience.may_judge(kDeadline + 9s + Patience::kReadMailFirst, kDeadline));
}

}  // namespace
}  // namespace cpprun
