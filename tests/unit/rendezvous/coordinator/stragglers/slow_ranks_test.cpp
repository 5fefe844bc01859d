// SlowRanks: which ranks are slow, by reports of compute times.
#include "rendezvous/coordinator/stragglers/slow_ranks.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "common/limits/stragglers.hpp"

namespace cpprun::test {
namespace {

constexpr int64_t kUs = 20'000;  // of a step

class SlowRanksTest : public testing::Test {
 public:
  // All ranks report `steps` steps; those of `slow` took `percent` of the others' time.
  std::vector<SlowRankChange> report(int64_t ranks, int64_t steps, std::vector<int64_t> slow = {},
                                     int64_t percent = 200) {
    std::vector<SlowRankChange> changes;
    for (int64_t rank = 0; rank < ranks; ++rank) {
      const bool is_slow = std::ranges::count(slow, rank) > 0;
      const auto change = found.add(rank, steps, is_slow ? kUs * percent / 100 : kUs);
      if (change) changes.push_back(*change);
    }
    return changes;
  }

  SlowRanks found;
};

TEST_F(SlowRanksTest, ASlowRankIsNamedWithinTwentySteps) {
  std::vector<SlowRankChange> changes;
  int64_t steps = 0;
  while (changes.empty() && steps < 100) {
    ++steps;
    changes = report(4, 1, {2});
  }
  ASSERT_EQ(changes.size(), 1u);
  EXPECT_LE(steps, limits::kSlowWindow);
  EXPECT_EQ(changes[0].rank, 2);
  EXPECT_TRUE(changes[0].is_slow);
  EXPECT_EQ(changes[0].compute_us, 2 * kUs);
  EXPECT_EQ(changes[0].median_us, kUs);
  ASSERT_EQ(found.slow().size(), 1u);
  EXPECT_TRUE(report(4, 1, {2}).empty()) << "it is news only once";
}

TEST_F(SlowRanksTest, OneReportOfManySlowStepsIsNotEnough) {
  EXPECT_TRUE(report(4, 500, {3}).empty());
  EXPECT_TRUE(report(4, 500).empty());
  EXPECT_TRUE(report(4, 500).empty());
  EXPECT_TRUE(found.slow().empty()) << "a pause of the machine is in one report";
  SlowRanks other;
  std::swap(found, other);
  for (int reports = 1; reports < 3; ++reports) EXPECT_TRUE(report(4, 500, {3}).empty());
  EXPECT_EQ(report(4, 500, {3}).size(), 1u);
}

TEST_F(SlowRanksTest, ARankThatIsFastAgainIsNoLongerSlow) {
  for (int i = 0; i < 30; ++i) report(4, 1, {0});
  ASSERT_EQ(found.slow().size(), 1u);
  std::vector<SlowRankChange> changes;
  for (int i = 0; i < 30 && changes.empty(); ++i) changes = report(4, 1);
  ASSERT_EQ(changes.size(), 1u);
  EXPECT_FALSE(changes[0].is_slow);
  EXPECT_TRUE(found.slow().empty());
}

TEST_F(SlowRanksTest, SmallDifferencesAndFewRanksShowNothing) {
  for (int i = 0; i < 100; ++i) EXPECT_TRUE(report(4, 1, {3}, 125).empty());
  found.begin_round(RoundNumber(2));
  for (int i = 0; i < 100; ++i) EXPECT_TRUE(report(2, 1, {1}).empty()) << "two have no median";
  found.begin_round(RoundNumber(3));
  for (int64_t i = 0; i < 400; ++i) {  // 0.3 ms and 0.9 ms: noise of the scheduler
    EXPECT_FALSE(found.add(i % 4, 1, i % 4 == 1 ? 900 : 300));
  }
}

TEST_F(SlowRanksTest, AllRanksThatSlowDownTogetherAreNotSlow) {
  for (int i = 0; i < 50; ++i) report(8, 1);
  for (int i = 0; i < 50; ++i) EXPECT_TRUE(report(8, 1, {0, 1, 2, 3, 4, 5, 6, 7}, 300).empty());
}

TEST_F(SlowRanksTest, NoFalseAlarmInTenThousandStepsOfNoise) {
  std::mt19937_64 noise(20261124);
  std::lognormal_distribution<double> factor(0, 0.25);  // one step of 7 is 1.3 times the median
  int64_t alarms = 0;
  for (int step = 0; step < 10'000; ++step) {
    for (int64_t rank = 0; rank < 8; ++rank) {
      const auto took = static_cast<int64_t>(static_cast<double>(kUs) * factor(noise));
      alarms += found.add(rank, 1, took) ? 1 : 0;
    }
  }
  EXPECT_EQ(alarms, 0);
}

TEST_F(SlowRanksTest, NumbersOutOfRangeAreIgnored) {
  EXPECT_FALSE(found.add(-1, 1, kUs));
  EXPECT_FALSE(found.add(0, 0, kUs));
  EXPECT_FALSE(found.add(0, 1, -1));
  EXPECT_FALSE(found.add(0, 1, INT64_MAX));
  EXPECT_EQ(found.known(), 0u);
  for (int i = 0; i < 5; ++i) report(4, INT64_MAX, {1});
  EXPECT_EQ(found.slow().size(), 1u);
}

}  // namespace
}  // namespace cpprun::test
