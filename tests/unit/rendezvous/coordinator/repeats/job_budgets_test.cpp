// Restart budgets by class of failure (R7), and the delay of restarts in quick succession.
#include "common/limits/rendezvous.hpp"
#include "tests/unit/rendezvous/coordinator/support_job.hpp"

namespace cpprun::test {
namespace {

using control::RestartCharge;

class Budgets : public JobTest {
 public:
  // Round 1 of a job of a and b that may lose `max_losses` nodes. One node is enough.
  void runs_with_losses(int64_t max_losses) {
    nodes(1, 2);
    job_spec.max_node_losses = max_losses;
    a_and_b_run();
  }
  // b dies, and a joins the next round alone.
  void loses_b() {
    dies("b");
    sends_stopped("a");
    passes(limits::kDeathGrace);
  }
  void hangs(const std::string& name) {
    WorkerExit end;
    end.hang = "no heartbeat for 12.0 s";
    end.rank = Rank(assignment(name).base_rank);
    sends(name, control::Failed{round_of(name), end, false});
  }
  const std::string& outcome() { return received<control::JobResult>("a")->failure_summary; }
};

TEST_F(Budgets, WithoutALimitNoLossIsCounted) {
  runs_with_losses(-1);
  dies("b");
  EXPECT_EQ(received<control::Stop>("a")->charged, RestartCharge::None);
  sends_stopped("a");
  passes(limits::kDeathGrace);
  expect_assignment("a", 2, 0, 2);
  EXPECT_EQ(class_budgets(assignment("a")).node_losses, 0);
  EXPECT_EQ(class_budgets(assignment("a")).max_node_losses, -1);
  EXPECT_EQ(job().node_loss_budget(), nullptr);
}

TEST_F(Budgets, ALossIsChargedToItsOwnBudget) {
  runs_with_losses(2);
  dies("b");
  EXPECT_EQ(received<control::Stop>("a")->charged, RestartCharge::NodeLoss);
  sends_stopped("a");
  passes(limits::kDeathGrace);
  expect_assignment("a", 2, 0, 2);
  EXPECT_EQ(class_budgets(assignment("a")).node_losses, 1);
  EXPECT_EQ(class_budgets(assignment("a")).max_node_losses, 2);
  EXPECT_EQ(assignment("a").restart_count, 0);
}

TEST_F(Budgets, OneLossTooManyEndsTheJobAndNamesTheBudget) {
  runs_with_losses(1);
  loses_b();
  join("c");
  passes(limits::kScaleUpInterval);
  if (received<control::Stop>("a")->round == RoundNumber(2)) sends_stopped("a");
  expect_assignment("a", 3, 0, 4);
  sends_started("a");
  dies("c");
  EXPECT_FALSE(received<control::JobResult>("a")) << "its workers live";
  sends_stopped("a");
  passes(limits::kDeathGrace);
  expect_decided("a", false);
  EXPECT_EQ(outcome(), "the agent on c died; node losses used: 1 of 1 (--max-node-losses)");
  EXPECT_FALSE(received<control::JobResult>("a")->root_cause) << "no worker is to blame";
}

TEST_F(Budgets, ASilentNodeAndOneThatWasCutOffAreLosses) {
  runs_with_losses(5);
  sends_stopped("b");  // at the end of its worker lease
  sends_stopped("a");
  EXPECT_EQ(class_budgets(assignment("a")).node_losses, 1);
  all({"a", "b"}, &JobTest::sends_started);
  player("b").is_silent = true;
  passes(limits::kNodeLease + 1s);
  sends_stopped("a");
  EXPECT_EQ(class_budgets(assignment("a")).node_losses, 2);
}

TEST_F(Budgets, AnUnusableNodeIsALoss) {
  runs_with_losses(5);
  is_unusable("b");
  sends_stopped("a");
  EXPECT_EQ(class_budgets(assignment("a")).node_losses, 1);
}

TEST_F(Budgets, WorkersThatFailBecauseOfALossCostNothing) {
  runs_with_losses(5);
  dies("b");
  sends_failed("a");
  sends_stopped("a");
  passes(limits::kDeathGrace);
  EXPECT_EQ(class_budgets(assignment("a")).node_losses, 1);
  EXPECT_EQ(assignment("a").restart_count, 0);
}

TEST_F(Budgets, ALossAfterAFailureCostsNothing) {
  runs_with_losses(0);
  sends_failed("a");
  dies("b");
  sends_stopped("a");
  passes(limits::kDeathGrace);
  expect_assignment("a", 2, 0, 2);
  EXPECT_EQ(class_budgets(assignment("a")).node_losses, 0);
  EXPECT_EQ(assignment("a").restart_count, 1);
}

TEST_F(Budgets, ARequestedStopCostsNothing) {
  runs_with_losses(0);
  drains("b");
  EXPECT_EQ(received<control::Stop>("a")->charged, RestartCharge::None);
  dies("b");  // the machine is taken away before it has saved
  sends_saved("a");
  passes(limits::kDeathGrace);
  expect_assignment("a", 2, 0, 2);
  EXPECT_EQ(class_budgets(assignment("a")).node_losses, 0);
}

TEST_F(Budgets, ANodeThatLeavesIsNoLoss) {
  runs_with_losses(0);
  leaves("b");
  sends_stopped("a");
  expect_assignment("a", 2, 0, 2);
}

TEST_F(Budgets, TheExclusionOfAHostTakesNoLossBack) {
  job_spec.exclude_after = 1;
  runs_with_losses(5);
  dies("b");
  sends_failed("a");
  sends_stopped("a");
  passes(limits::kDeathGrace);
  EXPECT_EQ(class_budgets(assignment("a")).node_losses, 1);
}

TEST_F(Budgets, HangsHaveALimitOfTheirOwn) {
  job_spec.max_restarts = 3;
  job_spec.max_hangs = 1;
  a_and_b_run();
  EXPECT_EQ(class_budgets(assignment("a")).max_hangs, 1);
  hangs("b");
  all({"a", "b"}, &JobTest::sends_stopped);
  expect_assignment("a", 2, 0, 4);
  EXPECT_EQ(assignment("a").hang_restarts, 1);
  hangs("b");
  all({"a", "b"}, &JobTest::sends_stopped);
  expect_decided("a", false);
  EXPECT_NE(outcome().find("; restarts used after hangs: 1 of 1 (--max-hangs)"), std::string::npos)
      << outcome();
}

TEST_F(Budgets, HangsMayGoOnWhereNoFailureMay) {
  job_spec.max_restarts = 0;
  job_spec.max_hangs = 1;
  a_and_b_run();
  hangs("b");
  all({"a", "b"}, &JobTest::sends_stopped);
  expect_assignment("a", 2, 0, 4);
}

class Backoff : public Budgets {
 public:
  Backoff() {
    job_spec.max_restarts = 100;
    job_spec.restart_backoff = 10s;
    a_and_b_run();
  }
  void round_fails() {
    sends_failed("b");
    all({"a", "b"}, &JobTest::sends_stopped);
  }
  void starts() { all({"a", "b"}, &JobTest::sends_started); }
  int64_t round() { return job().round().value; }
  // Requires: this many rounds have failed in quick succession.
  void expect_delay(Duration delay) {
    EXPECT_EQ(job().restart_delay(), delay);
    ASSERT_EQ(phase(), Phase::WaitingForNodes);
    passes(delay - 1ms);
    ASSERT_EQ(phase(), Phase::WaitingForNodes);
    passes(1ms);
    ASSERT_EQ(phase(), Phase::Running);
    EXPECT_EQ(job().restart_delay(), Duration{});
    starts();
  }
};

TEST_F(Backoff, TheFirstRestartComesAtOnceAndLaterOnesWaitTwiceAsLong) {
  round_fails();
  expect_assignment("a", 2, 0, 4);
  starts();
  for (const Duration delay : {10s, 20s, 40s, 80s, 160s, 300s, 300s}) {
    round_fails();
    expect_delay(delay);
  }
  EXPECT_EQ(job().budget().used(), 8);
}

TEST_F(Backoff, WaitingNodesLearnWhyAndForHowLong) {
  round_fails();
  round_fails();
  const auto* wait = received<control::Wait>("a");
  ASSERT_TRUE(wait);
  EXPECT_EQ(wait->delay, 10s);
  EXPECT_EQ(wait->why, job().why_no_round());
  EXPECT_EQ(wait->why,
            "10 s before the next round, because 2 rounds in a row failed within 60 s and without "
            "progress (--restart-backoff)");
}

TEST_F(Backoff, ALongRoundBeginsTheCountAnew) {
  round_fails();
  starts();
  passes(limits::kQuickRound);
  round_fails();
  EXPECT_EQ(phase(), Phase::Running) << "no quick failure";
  round_fails();
  EXPECT_EQ(phase(), Phase::Running) << "the first one again";
}

TEST_F(Backoff, ProgressBeginsTheCountAnew) {
  round_fails();
  sends_failed("b");
  sends_stopped("a");
  control::Stopped stopped{round_of("b"), 40'000};
  stopped.step = 12;
  sends("b", stopped);
  EXPECT_EQ(phase(), Phase::Running);
}

TEST_F(Backoff, ARestartByAnOperatorEndsTheDelayAndTheCount) {
  round_fails();
  round_fails();
  const int64_t before = round();
  sends("a", control::AdminCommand{1, control::AdminCommandKind::Restart});
  EXPECT_EQ(received<control::AdminReply>("a")->text, "the next round begins now");
  EXPECT_EQ(round(), before + 1);
  EXPECT_EQ(job().admin_restarts(), 0) << "the round had failed by itself";
  starts();
  sends("a", control::AdminCommand{2, control::AdminCommandKind::Restart});
  all({"a", "b"}, &JobTest::sends_stopped);
  starts();
  round_fails();
  EXPECT_EQ(phase(), Phase::Running);
}

TEST_F(Backoff, AStopRequestEndsTheWait) {
  round_fails();
  round_fails();
  sends("a", control::AdminCommand{1, control::AdminCommandKind::Stop, true});
  EXPECT_TRUE(received<control::ShutdownRequest>("b"));
  all({"a", "b"}, &JobTest::leaves_saved);
  EXPECT_TRUE(core.jobs().empty() || job().is_over());
}

TEST_F(Backoff, TheCountTravelsWithTheRankAssignments) {
  round_fails();
  round_fails();
  passes(10s);
  ASSERT_TRUE(assignment("a").past_failures);
  EXPECT_EQ(assignment("a").past_failures->quick, 2);
}

TEST_F(Backoff, LossesCountToo) {
  for (int i = 0; i < 2; ++i) {
    sends_stopped("b");
    sends_stopped("a");
  }
  EXPECT_EQ(job().restart_delay(), 10s);
}

}  // namespace
}  // namespace cpprun::test
