#include "tests/support/sim/large_job.hpp"

#include <gtest/gtest.h>

namespace cpprun::sim {
namespace {

LargeJobOptions job(uint64_t seed, LargeJobMeans means) {
  LargeJobOptions options;
  options.seed = seed;
  options.workers = 16384;
  options.mttf = seconds(1.8 * 3600);
  options.means = means;
  return options;
}

TEST(LargeJob, IsTheSameForTheSameSeed) {
  const LargeJobResult one = run_large_job(job(7, {.spares = true, .memory = true}));
  const LargeJobResult again = run_large_job(job(7, {.spares = true, .memory = true}));
  const LargeJobResult other = run_large_job(job(8, {.spares = true, .memory = true}));
  EXPECT_EQ(one.useful, again.useful);
  EXPECT_EQ(one.accounted.spent, again.accounted.spent);
  EXPECT_NE(one.useful, other.useful);
}

TEST(LargeJob, EveryMomentIsAccountedOnce) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    const LargeJobResult result = run_large_job(job(seed, {}));
    EXPECT_EQ(result.accounted.total(), result.total) << seed;
  }
}

// The product's account and the steps that were kept agree, whatever the job uses.
TEST(LargeJob, AccountedLossIsTheLossWithinAPercentOfTheTime) {
  for (int bits = 0; bits < 32; ++bits) {
    const LargeJobMeans means{(bits & 1) != 0, (bits & 2) != 0, (bits & 4) != 0, (bits & 8) != 0,
                              (bits & 16) != 0};
    const LargeJobResult result = run_large_job(job(1, means));
    EXPECT_NEAR(result.accounted_goodput(), result.goodput(), 0.01) << bits;
  }
}

TEST(LargeJob, TrainsAllTheTimeWithoutAFailure) {
  LargeJobOptions options = job(1, {true, true, true, true, true});
  options.mttf = seconds(1e9);
  const LargeJobResult result = run_large_job(options);
  EXPECT_EQ(result.failures, 0);
  EXPECT_GT(result.goodput(), 0.999);
}

TEST(LargeJob, EachMeansHelps) {
  LargeJobMeans means;
  double before = run_large_job(job(1, means)).goodput();
  for (bool LargeJobMeans::*next :
       {&LargeJobMeans::spares, &LargeJobMeans::memory, &LargeJobMeans::preload,
        &LargeJobMeans::in_process, &LargeJobMeans::small_groups}) {
    means.*next = true;
    const double now = run_large_job(job(1, means)).goodput();
    EXPECT_GT(now, before);
    before = now;
  }
}

// They continue from the newest step, not from the newest snapshot.
TEST(LargeJob, SurvivorsRepeatFewSteps) {
  const auto redone = [](LargeJobMeans means) {
    const LargeJobResult result = run_large_job(job(1, means));
    return to_seconds(result.accounted[GoodputPhase::Redone]);
  };
  LargeJobMeans means{.spares = true, .memory = true, .preload = true};
  const double restarted = redone(means);
  means.in_process = true;
  EXPECT_LT(redone(means), restarted / 2);
}

TEST(LargeJob, ExcludesHostsThatFailAgainAndChargesNothingForThem) {
  const LargeJobResult result = run_large_job(job(1, {.spares = true}));
  EXPECT_GT(result.excluded, 0);
  EXPECT_LT(result.charged, result.rounds - result.excluded);
  EXPECT_EQ(run_large_job(job(1, {})).excluded, 0);
}

}  // namespace
}  // namespace cpprun::sim
