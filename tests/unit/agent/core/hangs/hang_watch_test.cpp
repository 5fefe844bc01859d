// What counts as a hang, and which worker differs from the others.
#include "agent/core/hangs/hang_watch.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <optional>

#include "common/limits/agent.hpp"

namespace cpprun::test {
namespace {

using namespace std::chrono_literals;
using State = WorkerObservation::State;
constexpr uint32_t kReady = 1, kTraining = 2, kSaving = 4;

class HangWatchTest : public testing::Test {
 protected:
  // Two workers in the state that the last check will find.
  HangWatchTest() { workers = {worker(0), worker(1)}; }

  static WorkerObservation worker(int64_t rank) {
    WorkerObservation made;
    made.local_rank = LocalRank(rank);
    made.rank = Rank(rank + 4);
    made.pid = static_cast<int>(100 + rank);
    return made;
  }
  void watches(Duration limit) {
    watch.emplace(HangConfig{HangConfig::Mode::Fixed, limit});
    watch->begin_round(now);
  }
  void watches_by_itself() {
    watch.emplace(HangConfig{HangConfig::Mode::Auto, {}});
    watch->begin_round(now);
  }
  void beats(size_t i, int64_t step, uint32_t phase = kTraining, int64_t collectives = 0) {
    workers[i].beat = Heartbeat{step, collectives, phase, {}};
  }
  // Worker i is in a section, for as long as the test lasts.
  void enters(size_t i, const std::string& name, Duration limit = {}) {
    workers[i].section = SectionTimes{name, {}, 0, limit};
    workers[i].section_age = {};
  }
  // All workers are in no section, and this one took so long.
  void took(const std::string& name, Duration longest) {
    for (WorkerObservation& seen : workers) {
      seen.section.reset();
      seen.sections = {SectionTimes{name, longest, 1, {}}};
    }
  }
  void works(size_t i) { workers[i].cpu += 10s; }
  // Runs the checks when they are due; calls `each` before each of them.
  void passes(
      Duration duration, const std::function<void()>& each = [] {}) {
    const Instant end = now + duration;
    while (!hang && watch->next_look() <= end) {
      ASSERT_GT(watch->next_look(), now);
      goes_to(watch->next_look());
      each();
      ++looks;
      hang = watch->look(now, workers);
    }
    if (!hang) goes_to(end);
  }
  void goes_to(Instant at) {
    for (WorkerObservation& seen : workers) {
      if (seen.beat) seen.beat->age += at - now;
      seen.section_age += at - now;
    }
    now = at;
  }
  void expect_hang(int64_t rank, const std::string& part) {
    ASSERT_TRUE(hang);
    EXPECT_EQ(hang->worker.rank.value, rank + 4);
    EXPECT_NE(hang->how.find(part), std::string::npos) << hang->how;
  }
  // All workers enter the section "validation", whose limit is five times that.
  void expect_validation_to_have_taken_8_s() {
    enters(0, "validation");
    enters(1, "validation");
    passes(38s);
    EXPECT_FALSE(hang) << "five times eight seconds";
    passes(30s);
    ASSERT_TRUE(hang);
    EXPECT_NE(hang->how.find("the longest so far took 8.0 s"), std::string::npos) << hang->how;
  }

  std::optional<agent::HangWatch> watch;
  std::vector<WorkerObservation> workers;
  Instant now = Instant::from_nanoseconds(1'000'000'000'000);
  std::optional<agent::Hang> hang;
  int looks = 0;
};

TEST_F(HangWatchTest, NoHeartbeatForTheLimitIsAHangEvenOfABusyWorker) {
  watches(10s);
  beats(0, 7);
  beats(1, 7);
  passes(9s, [&] { works(0); });
  EXPECT_FALSE(hang);
  passes(4s, [&] { works(0); });
  expect_hang(0, "no heartbeat for 1");
  expect_hang(0, "at step 7, training; it is busy, the others wait");
  EXPECT_TRUE(hang->is_sure);
}

TEST_F(HangWatchTest, HeartbeatsPreventAHang) {
  watches(10s);
  int64_t step = 0;
  passes(300s, [&] {
    beats(0, ++step);
    beats(1, step);
  });
  EXPECT_FALSE(hang);
}

TEST_F(HangWatchTest, NamesTheRankWithTheFewestCollectives) {
  watches(10s);
  beats(0, 7, kTraining, 42);
  beats(1, 7, kTraining, 41);
  passes(20s);
  expect_hang(1, "fewer collectives than the others (41)");
}

TEST_F(HangWatchTest, GuessesOnlyWhereNothingDistinguishesTheRanks) {
  watches(10s);
  beats(0, 7);
  beats(1, 7);
  passes(20s);
  ASSERT_TRUE(hang);
  EXPECT_TRUE(hang->is_guess);
  EXPECT_EQ(watch->silence_text(now, workers[1]), "no heartbeat for 10.0 s at step 7, training");
  hang.reset();
  watches(10s);
  beats(0, 7, kTraining, 41);
  beats(1, 7, kTraining, 42);
  passes(20s);
  ASSERT_TRUE(hang);
  EXPECT_FALSE(hang->is_guess);
}

TEST_F(HangWatchTest, NamesTheRankThatIsBehind) {
  watches(10s);
  beats(0, 7);
  beats(1, 8);
  passes(20s);
  expect_hang(0, "the others have come further");
}

TEST_F(HangWatchTest, OneRankHangsThoughOthersProgress) {
  watches(10s);
  beats(1, 3);
  int64_t step = 3;
  passes(20s, [&] { beats(0, ++step); });
  expect_hang(1, "at step 3");
}

TEST_F(HangWatchTest, ALongSnapshotIsNoHang) {
  watches(10s);
  beats(0, 7, kSaving);
  beats(1, 7);  // waits for it
  passes(600s, [&] { workers[0].bytes += 1; });
  EXPECT_FALSE(hang);
  passes(20s);
  ASSERT_TRUE(hang) << "its disk is gone";
}

TEST_F(HangWatchTest, ALongStartIsNoHang) {
  watches(10s);
  passes(600s, [&] { works(0); });
  EXPECT_FALSE(hang) << "rank 1 waits for rank 0";
}

TEST_F(HangWatchTest, WithoutHeartbeatsAllRanksMustBeIdle) {
  watches(10s);
  passes(20s);
  expect_hang(0, "it sends no heartbeats, so no more is known");
  EXPECT_TRUE(hang->is_sure) << "the user gave the limit";
}

TEST_F(HangWatchTest, NamesASuspendedRank) {
  watches(10s);
  beats(0, 7);
  beats(1, 7);
  workers[1].state = State::Stopped;
  passes(20s);
  expect_hang(1, "at step 7, training; it is stopped by a signal");
}

TEST_F(HangWatchTest, ARankResumedInTimeIsNoHang) {
  watches(10s);
  for (int i = 0; i < 10; ++i) {
    workers[1].state = i % 2 == 0 ? State::Stopped : State::Going;
    passes(9s, [&] { works(1); });
  }
  EXPECT_FALSE(hang);
}

TEST_F(HangWatchTest, AnAttachedDebuggerPreventsAHang) {
  watches(10s);
  beats(0, 7);
  beats(1, 7);
  workers[1].state = State::Traced;
  passes(3600s);
  EXPECT_FALSE(hang);
  workers[1].state = State::Going;
  passes(9s);
  EXPECT_FALSE(hang) << "the time counts from its leaving";
  passes(9s);
  EXPECT_TRUE(hang);
}

TEST_F(HangWatchTest, ASuspendedHostDoesNotCount) {
  watches(10s);
  beats(0, 7);
  beats(1, 7);
  workers[0].beat->age = 3600s;
  now = now + 3600s;  // the machine was suspended
  hang = watch->look(now, workers);
  EXPECT_FALSE(hang);
  passes(9s);
  EXPECT_FALSE(hang);
}

TEST_F(HangWatchTest, NamesARankBlockedInTheKernel) {
  watches(10s);
  beats(0, 7);
  beats(1, 7);
  workers[1].state = State::Blocked;
  passes(20s);
  expect_hang(1, "it waits inside the kernel");
}

TEST_F(HangWatchTest, AutoActsWhenAllRanksAreIdle) {
  watches_by_itself();
  beats(0, 7);
  beats(1, 7);
  passes(limits::kHangSilence - 1s);
  EXPECT_FALSE(hang);
  passes(200s);
  ASSERT_TRUE(hang);
  EXPECT_TRUE(hang->is_sure);
}

TEST_F(HangWatchTest, AutoSparesABusyValidation) {
  watches_by_itself();
  beats(0, 7);
  beats(1, 7);
  passes(4 * 3600s, [&] { works(1); });
  EXPECT_FALSE(hang);
}

TEST_F(HangWatchTest, AutoLearnsHowLongAStepTakes) {
  watches_by_itself();
  int64_t step = 0;
  for (int i = 0; i < 5; ++i) {  // a step takes two minutes and needs no CPU
    beats(0, ++step);
    beats(1, step);
    passes(120s);
  }
  passes(120s * 15);
  EXPECT_FALSE(hang);
  passes(120s * 10);
  EXPECT_TRUE(hang);
}

TEST_F(HangWatchTest, AutoAcceptsAnyStepNumber) {
  watches_by_itself();
  for (const int64_t step : {INT64_MIN, INT64_MAX, INT64_MIN}) {  // the worker's own text, hostile
    beats(0, step);
    beats(1, step);
    passes(60s);
  }
  passes(60s * 30);
  EXPECT_TRUE(hang);
}

TEST_F(HangWatchTest, AutoWarnsOnceAboutProgramsWithoutHeartbeats) {
  watches_by_itself();
  passes(limits::kHangSilenceLong + 120s);
  ASSERT_TRUE(hang);
  EXPECT_FALSE(hang->is_sure);
  hang.reset();
  passes(24 * 3600s);
  EXPECT_FALSE(hang);
}

TEST_F(HangWatchTest, AutoEndsASuspendedRankSoon) {
  watches_by_itself();
  workers[0].state = State::Stopped;
  now = now + 5s;
  EXPECT_FALSE(watch->look(now, workers)) << "the kernel reported that it was stopped";
  passes(limits::kHangStoppedTimeout);
  expect_hang(0, "stopped by a signal");
  EXPECT_TRUE(hang->is_sure);
}

TEST_F(HangWatchTest, AutoWakesTheAgentAtMostEveryTenSeconds) {
  watches_by_itself();
  EXPECT_GE(watch->next_look() - now, 10s);
  beats(0, 1, kReady);
  passes(600s);
  EXPECT_LE(looks, 11);
}

TEST_F(HangWatchTest, OffNeverChecks) {
  watch.emplace(HangConfig{HangConfig::Mode::Off, {}});
  watch->begin_round(now);
  EXPECT_TRUE(watch->next_look().is_never());
  EXPECT_FALSE(watch->look(now + 3600s, workers));
}

TEST_F(HangWatchTest, ANewRoundStartsFresh) {
  watches(10s);
  beats(0, 7);
  passes(9s);
  watch->begin_round(now);
  workers = {worker(0), worker(1)};
  passes(9s, [&] { works(0); });
  EXPECT_FALSE(hang);
  watch->end_round();
  EXPECT_TRUE(watch->next_look().is_never());
}

// ---------------------------------------------------------------- sections

TEST_F(HangWatchTest, ASectionLongerThanItsOwnLimitIsAHangEvenOfABusyWorker) {
  watches_by_itself();
  beats(0, 7);
  beats(1, 7);
  enters(1, "checkpoint", 90s);
  const auto both_work = [&] {
    works(0);
    works(1);
  };
  passes(89s, both_work);
  EXPECT_FALSE(hang);
  passes(100s, both_work);
  expect_hang(1, "in the section 'checkpoint' for");
  EXPECT_NE(hang->how.find("its limit is 90.0 s, given by the program"), std::string::npos)
      << hang->how;
  EXPECT_TRUE(hang->is_sure) << "the program has reported it";
}

TEST_F(HangWatchTest, TheLimitOfASectionIsLearnedAndKeptOverRounds) {
  watches(10s);
  beats(0, 7);
  beats(1, 7);
  took("validation", 8s);
  passes(5s);
  ASSERT_FALSE(hang);
  watch->end_round();
  watch->begin_round(now);
  for (WorkerObservation& seen : workers) seen.sections.clear();
  expect_validation_to_have_taken_8_s();
}

TEST_F(HangWatchTest, WhatEarlierJobsHaveLearnedCounts) {
  watches(10s);
  watch->learn(HangTimes{{{"training", 40s}}, {{"validation", 8s}}});
  beats(0, 7);
  beats(1, 7);
  expect_validation_to_have_taken_8_s();
  EXPECT_EQ(watch->learned(), (HangTimes{{{"training", 40s}}, {{"validation", 8s}}}));
}

TEST_F(HangWatchTest, LongestTimesAreReportedForLaterJobs) {
  watches(100s);
  EXPECT_EQ(watch->learned(), HangTimes());
  watch->learn(
      HangTimes{{{"training", 3s}, {"a phase of later versions", 1h}}, {{"validation", 8s}}});
  beats(0, 7);
  beats(1, 7);
  took("validation", 9s);
  passes(30s);
  beats(0, 8);
  beats(1, 8);
  passes(30s);
  const HangTimes learned = watch->learned();
  EXPECT_EQ(learned.sections.at("validation"), 9s);
  EXPECT_GT(learned.phases.at("training"), 3s);
  EXPECT_EQ(learned.phases.size(), 1u);
}

TEST_F(HangWatchTest, AWorkerThatIsBusyInASectionWithoutALimitDoesNotHang) {
  watches(10s);
  beats(0, 7);
  beats(1, 7);
  enters(0, "validation");
  passes(100s, [&] { works(0); });
  EXPECT_FALSE(hang) << "and the other one may wait for it";
}

}  // namespace
}  // namespace cpprun::test
