// Reports of workers before their first step.
#include "agent/core/startup_progress.hpp"

#include <gtest/gtest.h>

namespace cpprun::agent::test {
namespace {

constexpr LocalRank kFirst{0}, kSecond{1};

Instant at(int64_t ns) { return Instant::from_nanoseconds(ns); }

TEST(StartupProgress, APhaseEndsWithItsLastWorker) {
  StartupProgress way;
  way.begin(2);
  way.connected(kFirst, at(1));
  EXPECT_FALSE(way.connected_at().has_value());
  way.connected(kSecond, at(5));
  EXPECT_EQ(way.connected_at(), at(5));
  EXPECT_FALSE(way.stepped(kSecond));
  EXPECT_FALSE(way.stepped(kSecond)) << "one worker is not two";
  EXPECT_TRUE(way.stepped(kFirst));
  EXPECT_FALSE(way.stepped(kFirst)) << "only once";
  EXPECT_FALSE(way.loaded_at().has_value()) << "no worker has reported it";
}

TEST(StartupProgress, TheLaterOfReadyAndResumedCounts) {
  StartupProgress way;
  way.begin(2);
  way.loaded(kFirst, at(1));
  way.loaded(kSecond, at(2));
  way.loaded(kFirst, at(7));
  EXPECT_EQ(way.loaded_at(), at(7));
  way.stepped(kFirst);
  way.loaded(kFirst, at(9));
  EXPECT_EQ(way.loaded_at(), at(7)) << "its training has begun";
}

TEST(StartupProgress, ANewRoundStartsFresh) {
  StartupProgress way;
  EXPECT_FALSE(way.connected_at().has_value());
  way.begin(1);
  way.connected(kFirst, at(1));
  EXPECT_TRUE(way.stepped(kFirst));
  way.begin(1);
  EXPECT_FALSE(way.connected_at().has_value());
  EXPECT_TRUE(way.stepped(kFirst));
}

}  // namespace
}  // namespace cpprun::agent::test
