// Workers that stay alive between two rounds: when the agent's core asks for that, what it reports
// meanwhile, and when it gives them up.
#include "agent/core/stop_texts.hpp"
#include "tests/unit/agent/core/support_agent.hpp"

namespace cpprun::test {
namespace {

class AgentSurvivorsTest : public AgentTest {
 public:
  AgentSurvivorsTest() { permits(true); }

  void permits(bool is_permitted) {
    agent::AgentOptions with = options();
    with.keeps_survivors = is_permitted;
    core = Core(with);
    call([&](agent::Effects& e) { core.start(now, e); });
  }
  // A round that may be restarted.
  void begins(int64_t round, int64_t restart_count = 0) {
    if (!is_connected) is_in_touch();
    control::RankAssignment assignment = assignment_of(round);
    assignment.restart_count = restart_count;
    assignment.max_restarts = 3;
    assignment.hang_restarts = hangs_used;
    assignment.budgets.emplace().max_hangs = 2;
    receives(assignment);
    ASSERT_EQ(core.state(), State::Running);
    if (has_elastic_workers) core.on_can_regroup();
    forget();
  }
  // A worker of it has completed a step.
  void trains(int64_t round = 1, int64_t restart_count = 0) {
    begins(round, restart_count);
    core.on_step();
  }
  void are_released() {
    call([&](agent::Effects& e) { core.on_workers_released(now, e); });
  }
  void hangs(int64_t local_rank) {
    WorkerExit hung;
    hung.local_rank = LocalRank(local_rank);
    hung.hang = "no heartbeat for 9.0 s";
    call([&](agent::Effects& e) { core.on_hang(now, hung, e); });
  }
  // Local rank 1 has died, and the other worker is held.
  void holds_survivor() {
    trains();
    worker_ends(1, -kKill);
    are_released();
    ASSERT_EQ(core.state(), State::Stopped);
  }
  void expect_stop(size_t at, bool keeps_survivors) {
    ASSERT_GT(stops.size(), at);
    EXPECT_EQ(stops[at].signal, kTerm);
    EXPECT_EQ(stops[at].keeps_survivors, keeps_survivors);
  }

  static constexpr StopCause kChangesOfNodes[] = {StopCause::Drain, StopCause::Scale,
                                                  StopCause::Exclusion};
  bool has_elastic_workers = true;
  int64_t hangs_used = 0;  // of two
};

TEST_F(AgentSurvivorsTest, FailedWorkerLetsTheOthersStay) {
  trains();
  worker_ends(1, -kKill);
  expect_stop(0, true);
  EXPECT_TRUE(newest_sent<control::Failed>());
  EXPECT_FALSE(newest_sent<control::Stopped>()) << "the survivors are still in their process group";
  are_released();
  ASSERT_TRUE(newest_sent<control::Stopped>());
  EXPECT_EQ(newest_sent<control::Stopped>()->round, RoundNumber(1));
  gets_assignment(2, 1);
  ASSERT_EQ(started.size(), 1U);
  EXPECT_EQ(started[0].round, RoundNumber(2));
}

TEST_F(AgentSurvivorsTest, OtherNodesFailureAndLossLetThemStay) {
  for (const StopCause cause :
       {StopCause::Failure, StopCause::NodeLost, StopCause::NodeLeft, StopCause::Growth}) {
    permits(true);
    is_connected = false;
    trains();
    is_stopped(1, cause);
    expect_stop(0, true);
  }
}

TEST_F(AgentSurvivorsTest, NoneStaysAfterTheLastLossOfANode) {
  permits(true);
  trains();
  receives(control::Stop{RoundNumber(1), StopCause::NodeLost, "b is gone",
                         control::RestartCharge::NodeLoss});
  expect_stop(0, false);
}

TEST_F(AgentSurvivorsTest, OperatorAndBadSnapshotRestartAll) {
  for (const StopCause cause : {StopCause::Operator, StopCause::Snapshot}) {
    permits(true);
    is_connected = false;
    trains();
    is_stopped(1, cause);
    expect_stop(0, false);
  }
}

TEST_F(AgentSurvivorsTest, RequestedChangesOfNodesLetThemStay) {
  for (const StopCause cause : kChangesOfNodes) {
    permits(true);
    is_connected = false;
    trains();
    is_stopped(1, cause);
    expect_stop(0, true);
    worker_ends(1, -kTerm);  // it cannot regroup
    EXPECT_FALSE(newest_sent<control::Failed>());
    are_released();
    ASSERT_TRUE(newest_sent<control::Stopped>());
    EXPECT_FALSE(newest_sent<control::Stopped>()->has_saved)
        << "the survivors have their work in memory";
    gets_assignment(2);
    EXPECT_EQ(started.size(), 1U);
  }
}

TEST_F(AgentSurvivorsTest, WorkersThatSaveDoSoBeforeARequestedChangeOfNodes) {
  for (const StopCause cause : kChangesOfNodes) {
    permits(true);
    is_connected = false;
    trains();
    core.on_savers(true);
    is_stopped(1, cause);
    expect_stop(0, false);
    EXPECT_TRUE(stops[0].lets_save);
  }
}

TEST_F(AgentSurvivorsTest, SigtermAfterADrainEndsThemAndTheirWorkIsLost) {
  for (const bool are_held : {false, true}) {
    permits(true);
    is_connected = false;
    trains();
    is_stopped(1, StopCause::Drain);
    if (are_held) are_released();
    signal(kTerm);
    expect_stop(1, false);
    worker_ends(0, -kTerm);
    worker_ends(1, -kTerm);
    all_quiet();
    expect_finish(How::Signal);
    ASSERT_TRUE(newest_sent<control::Leave>());
    EXPECT_FALSE(newest_sent<control::Leave>()->has_saved);
    finish.reset();
  }
}

TEST_F(AgentSurvivorsTest, DrainKeepsThoseThatRegroupAlready) {
  trains();
  worker_ends(1, -kKill);
  is_stopped(1, StopCause::Drain);
  EXPECT_EQ(stops.size(), 1U);
  is_stopped(1, StopCause::Operator);
  expect_stop(1, false);
}

TEST_F(AgentSurvivorsTest, NoneStaysIfTheUserForbidsIt) {
  permits(false);
  trains();
  worker_ends(1, -kKill);
  expect_stop(0, false);
}

TEST_F(AgentSurvivorsTest, WorkersThatKnowNothingOfItAreRestarted) {
  has_elastic_workers = false;
  trains();
  worker_ends(1, -kKill);
  expect_stop(0, false);
  ASSERT_EQ(failures.size(), 1U);
  EXPECT_FALSE(failures[0].regroups);
}

TEST_F(AgentSurvivorsTest, AbilityIsOfTheWorkersThatStay) {
  holds_survivor();
  has_elastic_workers = false;  // each worker process reports it once
  trains(2, 1);
  worker_ends(1, -kKill);
  expect_stop(0, true);
  all_quiet();  // none has stayed
  trains(3, 2);
  worker_ends(1, -kKill);
  expect_stop(0, false);
}

TEST_F(AgentSurvivorsTest, ConsoleShowsWhatFollows) {
  trains();
  worker_ends(1, -kKill);
  ASSERT_EQ(failures.size(), 1U);
  EXPECT_TRUE(failures[0].regroups);
  control::RankAssignment of;
  of.world_size = 4;
  of.max_restarts = 3;
  EXPECT_EQ(agent::restart_text(of, false), "restarting all 4 workers (restart 1 of 3)");
  EXPECT_EQ(agent::restart_text(of, false, true), "regrouping the other workers (restart 1 of 3)");
  control::Stop lost;
  lost.cause = StopCause::NodeLost;
  lost.why = "b is gone";
  EXPECT_EQ(agent::stop_event(lost, of, false, true).text,
            "b is gone; regrouping the workers (this uses up no restart)");
  lost.charged = control::RestartCharge::NodeLoss;
  of.budgets.emplace().max_node_losses = 1;
  EXPECT_EQ(agent::stop_event(lost, of, false).text,
            "b is gone; stopping the workers (node loss 1 of 1)");
  of.budgets->node_losses = 1;
  EXPECT_EQ(agent::stop_event(lost, of, false).text,
            "b is gone; stopping the workers (no node loss of --max-node-losses=1 is left)");
  of.budgets->max_hangs = 7;
  EXPECT_EQ(agent::restart_text(of, true), "restarting all 4 workers (restart 1 of 7 after hangs)");
}

TEST_F(AgentSurvivorsTest, ConsoleShowsHowManyStay) {
  const auto text = [](int64_t kept, int64_t replaced) {
    return agent::regrouped_text(RoundNumber(2), kept, replaced);
  };
  EXPECT_EQ(text(3, 1), "round 2 on this node: 3 workers stay, 1 is replaced");
  EXPECT_EQ(text(1, 2), "round 2 on this node: 1 worker stays, 2 are replaced");
  EXPECT_EQ(text(4, 0), "round 2 on this node: 4 workers stay, none is replaced");
  EXPECT_EQ(text(0, 4), "round 2 on this node: no worker stays, 4 are replaced");
}

TEST_F(AgentSurvivorsTest, NoneStaysAfterTheLastRestart) {
  trains(1, 3);
  worker_ends(1, -kKill);
  expect_stop(0, false);
}

TEST_F(AgentSurvivorsTest, FirstRoundWithoutAStepRestartsAll) {
  begins(1);
  worker_ends(1, 1);
  expect_stop(0, false);
}

TEST_F(AgentSurvivorsTest, SurvivorsStayAfterOneFailureBeforeAStep) {
  holds_survivor();
  begins(2, 1);
  worker_ends(1, 1);
  expect_stop(0, true);
  are_released();
  begins(3, 2);
  worker_ends(1, 1);
  expect_stop(0, false);
}

TEST_F(AgentSurvivorsTest, AStepForgetsTheFailuresBeforeIt) {
  holds_survivor();
  begins(2, 1);
  worker_ends(1, 1);
  are_released();
  trains(3, 2);
  worker_ends(1, 1);
  expect_stop(0, true);
}

TEST_F(AgentSurvivorsTest, SurvivorsStayAfterAnyNumberOfLostNodes) {
  trains();
  for (int64_t round = 1; round < 5; ++round) {
    is_stopped(round, StopCause::NodeLost);
    expect_stop(0, true);
    are_released();
    begins(round + 1);
  }
}

TEST_F(AgentSurvivorsTest, NewWorkersHaveNoStateToStayFor) {
  holds_survivor();
  all_quiet();  // the survivor has died
  begins(2, 1);
  worker_ends(1, 1);
  expect_stop(0, false);
}

TEST_F(AgentSurvivorsTest, HungWorkerIsStoppedAndTheOthersStay) {
  trains(1, 3);  // no restart is left, but hangs have a budget of their own
  hangs(1);
  expect_stop(0, true);
  EXPECT_EQ(stops[0].hung, LocalRank(1));
  ASSERT_EQ(failures.size(), 1U);
  EXPECT_TRUE(failures[0].regroups);
  are_released();
  EXPECT_TRUE(newest_sent<control::Stopped>());
}

TEST_F(AgentSurvivorsTest, NoneStaysAfterTheLastHang) {
  hangs_used = 2;
  trains();
  hangs(1);
  expect_stop(0, false);
}

TEST_F(AgentSurvivorsTest, HangOfAnotherNodeCountsInItsOwnBudget) {
  const auto reports_hang = [this] {
    receives(control::Stop{RoundNumber(1), StopCause::Failure, "rank 5 hangs",
                           control::RestartCharge::Hang});
  };
  trains(1, 3);
  reports_hang();
  expect_stop(0, true);
  permits(true);
  is_connected = false;
  hangs_used = 2;
  trains();
  reports_hang();
  expect_stop(0, false);
}

// The others may form a round as soon as this node has left.
TEST_F(AgentSurvivorsTest, StuckProcessEndsTheSurvivorsBeforeTheNodeGivesUp) {
  trains();
  worker_ends(1, -kKill);
  forget();
  is_stuck();
  expect_stop(0, false);
  EXPECT_FALSE(newest_sent<control::Leave>());
  is_stuck();
  ASSERT_TRUE(newest_sent<control::Leave>());
  EXPECT_TRUE(newest_sent<control::Leave>()->is_unusable);
}

TEST_F(AgentSurvivorsTest, WithoutReleasedWorkersItIsAnOrdinaryRestart) {
  trains();
  worker_ends(1, -kKill);
  worker_ends(0, -kTerm);
  all_quiet();
  expect_state(State::Stopped);
  gets_assignment(2, 1);
  expect_state(State::Running);
}

TEST_F(AgentSurvivorsTest, EndOfAHeldWorkerIsNoFailure) {
  holds_survivor();
  forget();
  worker_ends(0, -kKill);
  all_quiet();
  EXPECT_EQ(times<control::Failed>(), 0);
  EXPECT_EQ(times<control::Stopped>(), 0);
  expect_state(State::Stopped);
  gets_assignment(2, 1);
  EXPECT_EQ(started.size(), 1U);
}

TEST_F(AgentSurvivorsTest, EndedLeaseDropsThem) {
  holds_survivor();
  const Duration left = 4s;
  passes(left);
  expect_stop(1, false);
  EXPECT_LT(stops[1].grace, 30s) << "they must be gone when the lease ends";
}

TEST_F(AgentSurvivorsTest, LeaseIsExtendedForThem) {
  holds_survivor();
  passes_answered(10s);
  EXPECT_EQ(stops.size(), 1U);
  EXPECT_GT(worker_leases.back(), now);
}

TEST_F(AgentSurvivorsTest, NextRoundWaitsUntilDroppedWorkersAreGone) {
  holds_survivor();
  passes(4s);
  is_granted(4s);
  gets_assignment(2, 1);
  EXPECT_TRUE(started.empty());
  all_quiet();
  ASSERT_EQ(started.size(), 1U);
}

TEST_F(AgentSurvivorsTest, SparesDropThem) {
  holds_survivor();
  waits(true);
  expect_stop(1, false);
}

TEST_F(AgentSurvivorsTest, AnExcludedHostDropsThem) {
  holds_survivor();
  control::Wait wait{"a reason"};
  wait.is_excluded = true;
  receives(wait);
  expect_stop(1, false);
}

TEST_F(AgentSurvivorsTest, SigtermStopsThem) {
  holds_survivor();
  signal(kTerm);
  expect_stop(1, false);
  expect_no_finish();
  all_quiet();
  expect_finish(How::Stopped);
}

TEST_F(AgentSurvivorsTest, SigtermWhileTheyRegroupStopsThem) {
  trains();
  worker_ends(1, -kKill);
  signal(kTerm);
  expect_stop(1, false);
  are_released();
  EXPECT_FALSE(newest_sent<control::Stopped>());
  all_quiet();
  ASSERT_TRUE(finish);
}

TEST_F(AgentSurvivorsTest, DrainStopsThoseThatRegroupIfWorkersSave) {
  trains();
  core.on_savers(true);
  worker_ends(1, -kKill);
  is_stopped(1, StopCause::Drain);
  expect_stop(1, false);
}

TEST_F(AgentSurvivorsTest, EndOfTheJobStopsThemFirst) {
  holds_survivor();
  has_job_result(false);
  bye();
  expect_stop(1, false);
  expect_no_finish();
  all_quiet();
  expect_finish(How::Failure);
}

TEST_F(AgentSurvivorsTest, FailedStartLeavesNone) {
  holds_survivor();
  has_slow_spawns = true;
  gets_assignment(2, 1);
  start_fails(ErrorKind::System);
  expect_state(State::Stopped);
  signal(kTerm);
  ASSERT_TRUE(finish) << "no worker is left to wait for";
}

}  // namespace
}  // namespace cpprun::test
