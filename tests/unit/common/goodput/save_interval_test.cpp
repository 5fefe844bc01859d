#include "common/goodput/save_interval.hpp"

#include <gtest/gtest.h>

namespace cpprun {
namespace {

TEST(SaveInterval, IsYoungsIntervalWithinLimits) {
  EXPECT_NEAR(best_save_interval(1, 7200), 120, 1e-9);    // sqrt(2 * 1 * 7200)
  EXPECT_NEAR(best_save_interval(100, 200), 1000, 1e-9);  // at most a tenth of the time
  EXPECT_NEAR(best_save_interval(1e4, 1e9), 3600, 1e-9);
}

TEST(SaveInterval, BeginsWithFourHoursAndFollowsTheRollbacks) {
  EXPECT_DOUBLE_EQ(time_between_rollbacks(0, 0), 4 * 3600);
  EXPECT_DOUBLE_EQ(time_between_rollbacks(6 * 3600, 4), 2 * 3600);
}

TEST(SaveInterval, TheClockIsReadWhenASaveIsDue) {
  EXPECT_DOUBLE_EQ(time_until_poll(0.7, 2), 0.7);
  EXPECT_DOUBLE_EQ(time_until_poll(0.001, 2), 0.02);  // not after each step
  EXPECT_DOUBLE_EQ(time_until_poll(50, 60), 1);
  EXPECT_DOUBLE_EQ(time_until_poll(0, 2), 0.2);
  EXPECT_DOUBLE_EQ(time_until_poll(-5, 3600), 1);
}

}  // namespace
}  // namespace cpprun
