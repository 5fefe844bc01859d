// Phases of a start or a recovery, and their display.
#include "agent/core/phase_timings.hpp"

#include <gtest/gtest.h>

namespace cpprun::agent::test {
namespace {

Instant at_us(int64_t microseconds) { return Instant::from_nanoseconds(microseconds * 1000); }

TEST(PhaseTimings, MeasureBetweenTwoPoints) {
  PhaseTimings phases;
  phases.begin(at_us(100));
  phases.reach("detect", at_us(150));
  phases.reach("spawn_first", at_us(1150));
  EXPECT_EQ(timings_text("recovery", phases), "recovery 1.05 ms: detect 0.05, spawn first 1.00");
  phases.begin(at_us(2000));
  EXPECT_TRUE(phases.all().empty());
}

TEST(PhaseTimings, RecordNothingOutsideAMeasurement) {
  PhaseTimings phases;
  phases.reach("stop", at_us(1));
  EXPECT_TRUE(phases.all().empty());
  phases.begin(at_us(1));
  phases.end();
  phases.reach("stop", at_us(2));
  EXPECT_TRUE(phases.all().empty());
}

TEST(PhaseTimings, APointBeforeTheLastCountsAsZero) {
  PhaseTimings phases;
  phases.begin(at_us(100));
  phases.reach("a", at_us(50));
  phases.reach("b", at_us(120));
  EXPECT_EQ(phases.total(), std::chrono::microseconds(20));
}

}  // namespace
}  // namespace cpprun::agent::test
