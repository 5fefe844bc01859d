// When a coordinator applies its deadlines immediately, and when it reads its messages first.
#include "rendezvous/coordinator/late_wakeup_guard.hpp"

#include <gtest/gtest.h>

namespace cpprun {
namespace {

using namespace std::chrono_literals;

constexpr Instant kDeadline = Instant::from_nanoseconds(1'000'000'000);

TEST(LateWakeupGuard, R11_ChecksDeadlinesImmediatelyWhenOnTime) {
  LateWakeupGuard patience;
  EXPECT_EQ(patience.look_at(kDeadline), kDeadline);
  EXPECT_FALSE(patience.may_expire(kDeadline - 1ms, kDeadline));
  EXPECT_TRUE(patience.may_expire(kDeadline + 100ms, kDeadline));
}

TEST(LateWakeupGuard, R11_ReadsMessagesFirstAfterALateWakeup) {
  LateWakeupGuard patience;
  Instant woken = kDeadline + 3s;
  EXPECT_FALSE(patience.may_expire(woken, kDeadline));
  EXPECT_EQ(patience.look_at(kDeadline), woken + LateWakeupGuard::kDrainInputFirst);
  EXPECT_TRUE(patience.may_expire(woken + LateWakeupGuard::kDrainInputFirst, kDeadline));
  EXPECT_EQ(patience.look_at(kDeadline), kDeadline);
}

// More messages do not move the deadline.
TEST(LateWakeupGuard, R11_MessagesThatKeepArrivingDelayNothing) {
  LateWakeupGuard patience;
  Instant woken = kDeadline + 3s;
  EXPECT_FALSE(patience.may_expire(woken, kDeadline));
  for (Duration after = 1ms; after < LateWakeupGuard::kDrainInputFirst; after += 1ms) {
    EXPECT_FALSE(patience.may_expire(woken + after, kDeadline));
    EXPECT_EQ(patience.look_at(kDeadline), woken + LateWakeupGuard::kDrainInputFirst);
  }
  EXPECT_TRUE(patience.may_expire(woken + LateWakeupGuard::kDrainInputFirst, kDeadline));
}

TEST(LateWakeupGuard, R11_ASecondLateWakeupCountsToo) {
  LateWakeupGuard patience;
  EXPECT_FALSE(patience.may_expire(kDeadline + 3s, kDeadline));
  EXPECT_FALSE(patience.may_expire(kDeadline + 9s, kDeadline));
  EXPECT_TRUE(patience.may_expire(kDeadline + 9s + LateWakeupGuard::kDrainInputFirst, kDeadline));
}

}  // namespace
}  // namespace cpprun
