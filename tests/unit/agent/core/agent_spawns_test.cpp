// The agent's core while the daemon spawns the workers of a round.
#include "tests/unit/agent/core/support_agent.hpp"

namespace cpprun::test {
namespace {

class Spawns : public AgentTest {
 public:
  Spawns() { has_slow_spawns = true; }

  // The daemon spawns the workers of round 1.
  void is_spawning() {
    runs();
    EXPECT_EQ(started.size(), 1U);
    EXPECT_EQ(newest_sent<control::Started>(), nullptr);
  }
};

TEST_F(Spawns, StartedIsSentAfterTheLastSpawn) {
  is_spawning();
  has_spawned();
  EXPECT_EQ(newest_sent<control::Started>()->round, RoundNumber(1));
}

TEST_F(Spawns, TheLeaseContinuesMeanwhile) {
  is_spawning();
  passes_answered(3600s);  // longer than the join timeout
  expect_no_finish();
  EXPECT_GT(times<control::Ping>(), 3000);
  EXPECT_TRUE(stops.empty());
}

TEST_F(Spawns, WorkersAreStoppedWhenTheLeaseEnds) {
  is_spawning();
  passes(60s);
  ASSERT_FALSE(stops.empty());
  expect_state(State::Stopping);
  has_spawned();  // it was on its way
  EXPECT_EQ(newest_sent<control::Started>(), nullptr);
  all_quiet();
  expect_state(State::Stopped);
}

TEST_F(Spawns, AFailureOfAnEarlierWorkerStopsTheRound) {
  is_spawning();
  worker_fails(0, 3);
  ASSERT_EQ(stops.size(), 1U);
  worker_ends(0, 3);
  all_quiet();
  expect_state(State::Stopped);
  EXPECT_EQ(newest_sent<control::Failed>()->end.exit_code, 3);
  EXPECT_EQ(newest_sent<control::Started>(), nullptr);
}

TEST_F(Spawns, StopAndSignalsStopTheRound) {
  is_spawning();
  is_stopped(1);
  ASSERT_EQ(stops.size(), 1U);
  all_quiet();
  expect_state(State::Stopped);
  gets_assignment(2, 1);
  expect_state(State::Running);
  signal(2);
  ASSERT_EQ(stops.size(), 2U);
  all_quiet();
  expect_finish(How::Signal);
}

TEST_F(Spawns, AFailedStartEndsTheRound) {
  is_spawning();
  start_fails(ErrorKind::System);
  expect_state(State::Stopped);
  EXPECT_EQ(newest_sent<control::Failed>()->why, "no such program");
}

}  // namespace
}  // namespace cpprun::test
