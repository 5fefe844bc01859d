// The texts of goodput: durations and the line at the end of a job.
#include "common/goodput/goodput.hpp"

#include <gtest/gtest.h>

namespace cpprun::test {
namespace {

using namespace std::chrono_literals;

TEST(Goodput, DurationsHaveTwoUnitsAtMost) {
  EXPECT_EQ(long_duration_text(0s), "0.0 s");
  EXPECT_EQ(long_duration_text(12'399ms), "12.3 s");
  EXPECT_EQ(long_duration_text(59'999ms), "59.9 s");
  EXPECT_EQ(long_duration_text(4min), "4 min");
  EXPECT_EQ(long_duration_text(4min + 7s), "4 min 7 s");
  EXPECT_EQ(long_duration_text(6h + 12min + 59s), "6 h 12 min");
  EXPECT_EQ(long_duration_text(49h), "2 d 1 h");
}

Goodput long_job() {
  Goodput goodput;
  goodput[GoodputPhase::Training] = 6h;
  goodput[GoodputPhase::Redone] = 4min;
  goodput[GoodputPhase::Importing] = 3min;
  goodput[GoodputPhase::Waiting] = 2min;
  return goodput;
}

TEST(Goodput, TheGreatestLossComesFirst) {
  EXPECT_EQ(goodput_line(long_job()),
            "trained 97.5 % of 6 h 9 min; lost: 4 min redone steps, 3 min imports, 2 min waiting "
            "for nodes");
}

TEST(Goodput, SmallLossesAreOneSum) {
  Goodput goodput = long_job();
  goodput[GoodputPhase::Saving] = 90s;
  goodput[GoodputPhase::Stopping] = 70s;
  goodput[GoodputPhase::Hanging] = 60s;
  goodput[GoodputPhase::Starting] = 1s;  // does not show in the percentage
  EXPECT_TRUE(goodput_line(goodput).ends_with(
      ", 2 min waiting for nodes, 1 min 30 s saving, 2 min 11 s for the rest"))
      << goodput_line(goodput);
}

TEST(Goodput, ALossThatWouldShowAsZeroIsNotNamed) {
  Goodput goodput;
  goodput[GoodputPhase::Training] = 5s;
  goodput[GoodputPhase::Starting] = 99ms;
  EXPECT_EQ(goodput_line(goodput), "trained 98.0 % of 5.0 s");
}

TEST(Goodput, AShareIsNeverGuessed) {
  Goodput goodput;
  goodput[GoodputPhase::Unknown] = 99s;
  goodput[GoodputPhase::Starting] = 1s;
  EXPECT_FALSE(goodput.share());
  EXPECT_EQ(goodput_line(goodput),
            "the workers ran 99.0 % of 1 min 40 s and reported no steps, so the share of training "
            "is unknown; lost: 1.0 s starting");
}

TEST(Goodput, ARoundWithoutStepsIsALossWhereOthersHadSteps) {
  Goodput goodput = long_job();
  goodput[GoodputPhase::Unknown] = 5min;
  EXPECT_TRUE(goodput_line(goodput).find("lost: 5 min without a reported step, 4 min redone") !=
              std::string::npos);
}

TEST(Goodput, NamesTheNumberOfSubmissions) {
  Goodput goodput = long_job();
  goodput.submissions = 3;
  EXPECT_TRUE(goodput_line(goodput).starts_with("trained 97.5 % of 6 h 9 min in 3 submissions; "))
      << goodput_line(goodput);
  EXPECT_EQ(own_part_text(long_job()), "this submission trained 97.5 % of 6 h 9 min");
  Goodput waits;
  waits[GoodputPhase::Waiting] = 4min;
  EXPECT_EQ(own_part_text(waits), "this submission took 4 min");
}

}  // namespace
}  // namespace cpprun::test
