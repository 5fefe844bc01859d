// Recovery times over many runs of a plan.
#include "common/faults/statistics.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace cpprun::faults {
namespace {

TEST(Percentile, IsTheNearestRank) {
  const std::vector<double> values{5, 1, 4, 2, 3};
  EXPECT_EQ(percentile(values, 0), 1);
  EXPECT_EQ(percentile(values, 50), 3);
  EXPECT_EQ(percentile(values, 60), 3);
  EXPECT_EQ(percentile(values, 61), 4);
  EXPECT_EQ(percentile(values, 100), 5);
  EXPECT_EQ(percentile({}, 50), 0);
  EXPECT_EQ(percentile({7}, 1), 7);
}

TEST(Statistics, SumsByKind) {
  Statistics sums;
  Summary run;
  run.injections = {{"kill", 0.5, 3, std::nullopt}, {"kill", std::nullopt, std::nullopt, 1}};
  sums.add(run);
  run.injections = {{"kill", 1.5, 2, 1}, {"freeze", 2.0, std::nullopt, std::nullopt}};
  sums.add(run);
  EXPECT_THAT(sums.table(),
              testing::HasSubstr("kill                     3          2     0.500     1.500     "
                                 "1.500           5            2\n"));
  EXPECT_THAT(sums.table(), testing::HasSubstr("freeze                   1          1     2.000"));
}

TEST(Statistics, WithoutRunsIsOnlyAHeading) {
  EXPECT_THAT(Statistics().table(), testing::StartsWith("fault"));
}

}  // namespace
}  // namespace cpprun::faults
