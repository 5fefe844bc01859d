// Continuing a job after a restart of its coordinator without memory (R13).
#include <memory>

#include "tests/unit/rendezvous/coordinator/support_job.hpp"

namespace cpprun::test {
namespace {

using control::ReportedPhase;
using control::StopCause;

class JobRecoveryTest : public JobTest {
 public:
  JobRecoveryTest() { nodes(2, 3); }

  // Another process listens at the endpoint; it has no state.
  void coordinator_restarts(int64_t term = 100) {
    for (auto& [name, p] : players) {
      p.session.reset();
      p.facts.assignment.reset();
      if (round_of(name) > RoundNumber()) p.facts.assignment = assignment(name);
      p.facts.term = assignment(name).term;
      p.received.clear();
    }
    std::destroy_at(&core);
    std::construct_at(
        &core,
        CoordinatorOptions{"head", Term(term), std::nullopt, limits::kWaitReminderInterval, {}});
  }
  void reconnects(const std::string& name, ReportedPhase reported_phase) {
    Player& p = player(name);
    p.facts.has_worker_lease = reported_phase == ReportedPhase::Running;
    returns(name, reported_phase, p.facts.assignment ? p.facts.assignment->round.value : 0);
  }
};

TEST_F(JobRecoveryTest, R13_ARoundThatAllNodesStillRunContinues) {
  a_and_b_run();
  coordinator_restarts();
  reconnects("a", ReportedPhase::Running);
  EXPECT_EQ(phase(), Phase::Recovering);
  reconnects("b", ReportedPhase::Running);
  EXPECT_EQ(phase(), Phase::Running);
  EXPECT_EQ(job().round(), RoundNumber(1));
  for (const char* name : {"a", "b"}) {
    EXPECT_FALSE(received<control::Stop>(name)) << name;
    EXPECT_FALSE(received<control::RankAssignment>(name)) << name;
    EXPECT_EQ(received<control::Registered>(name)->term, Term(100));
  }
  for (const char* name : {"a", "b"}) sends(name, control::Done{RoundNumber(1)});
  expect_decided("a", true);
}

TEST_F(JobRecoveryTest, R13_TheHistoryOfARecoveredRoundContinues) {
  a_and_b_run();
  coordinator_restarts();
  reconnects("a", ReportedPhase::Running);
  reconnects("b", ReportedPhase::Running);
  ASSERT_EQ(job_history.of(run_id)->rounds().size(), 1U);
  const RoundRecord& history = job_history.of(run_id)->rounds().back();
  EXPECT_EQ(history.round, RoundNumber(1));
  EXPECT_EQ(history.nodes, 2U);
  EXPECT_TRUE(history.started_at);
  EXPECT_FALSE(history.over_at);
  EXPECT_EQ(job_history.of(run_id)->recoveries().count(), 0) << "nothing broke";
}

TEST_F(JobRecoveryTest, R13_NoWorkerLeaseBeforeTheNewestRoundIsKnown) {
  a_and_b_run();
  coordinator_restarts();
  reconnects("a", ReportedPhase::Running);
  passes(2s);
  EXPECT_FALSE(received<control::Pong>("a"));
  EXPECT_FALSE(received<control::Registered>("a"));
  EXPECT_TRUE(received<control::Wait>("a"));
  reconnects("b", ReportedPhase::Running);
  passes(2s);
  EXPECT_TRUE(received<control::Pong>("a"));
}

TEST_F(JobRecoveryTest, R13_PingsAreAnsweredOnceTheRoundIsKnown) {
  a_and_b_run();
  coordinator_restarts();
  reconnects("a", ReportedPhase::Running);
  sends("a", control::Ping{7});
  reconnects("b", ReportedPhase::Running);
  ASSERT_TRUE(received<control::Pong>("a"));
  EXPECT_EQ(received<control::Pong>("a")->seq, 7);
}

// They may be of an older round than the one that runs and this coordinator cannot learn of it:
// only an agent that holds a worker lease proves that there is none.
TEST_F(JobRecoveryTest, R13_MembersWithoutAWorkerLeaseProveNothing) {
  a_and_b_run();
  coordinator_restarts();
  reconnects("a", ReportedPhase::Stopped);
  reconnects("b", ReportedPhase::Stopped);
  EXPECT_EQ(phase(), Phase::Recovering);
  passes(limits::kNodeLease - 1ms);
  expect_no_assignment("a");
  passes(1ms);
  expect_assignment("a", 2, 0, 4);
}

TEST_F(JobRecoveryTest, R13_AReportedHangIsChargedToTheHangs) {
  a_and_b_run();
  coordinator_restarts();
  player("a").facts.charged = control::RestartCharge::Hang;
  reconnects("a", ReportedPhase::Stopped);
  reconnects("b", ReportedPhase::Running);
  expect_stop("b", StopCause::NodeLost);
  EXPECT_EQ(job().hang_restart_budget().used(), 1);
  EXPECT_EQ(job().budget().used(), 0);
  EXPECT_EQ(received<control::Stop>("b")->charged, control::RestartCharge::Hang);
}

class JobLossRecoveryTest : public JobRecoveryTest {
 public:
  JobLossRecoveryTest() {
    nodes(1, 3);
    job_spec.max_node_losses = 5;
    a_and_b_run();
  }
  // b does not return.
  void only_a_reconnects(ReportedPhase reported_phase) {
    reconnects("a", reported_phase);
    passes(limits::kNodeLease);
  }
};

TEST_F(JobLossRecoveryTest, R13_AMissingMemberIsCharged) {
  coordinator_restarts();
  only_a_reconnects(ReportedPhase::Running);
  EXPECT_EQ(received<control::Stop>("a")->charged, control::RestartCharge::NodeLoss);
  sends("a", control::Stopped{RoundNumber(1), 40001});
  expect_assignment("a", 2, 0, 2);
  EXPECT_EQ(class_budgets(assignment("a")).node_losses, 1);
}

TEST_F(JobLossRecoveryTest, R13_AReportedLossIsChargedOnce) {
  coordinator_restarts();
  player("a").facts.charged = control::RestartCharge::NodeLoss;
  only_a_reconnects(ReportedPhase::Stopped);
  expect_assignment("a", 2, 0, 2);
  EXPECT_EQ(class_budgets(assignment("a")).node_losses, 1);
  EXPECT_EQ(assignment("a").restart_count, 0);
}

TEST_F(JobLossRecoveryTest, R13_ALossOfARoundWhoseFailureWasChargedCostsNothing) {
  coordinator_restarts();
  player("a").facts.charged = control::RestartCharge::Failure;
  only_a_reconnects(ReportedPhase::Stopped);
  EXPECT_EQ(class_budgets(assignment("a")).node_losses, 0);
  EXPECT_EQ(assignment("a").restart_count, 1);
}

// The host of the coordinator was drained, and its standby leads the job.
TEST_F(JobLossRecoveryTest, R13_AMemberThatHasLeftOnRequestIsNoLoss) {
  coordinator_restarts();
  player("a").facts.is_stop_requested = true;
  only_a_reconnects(ReportedPhase::Stopped);
  expect_assignment("a", 2, 0, 2);
  EXPECT_EQ(class_budgets(assignment("a")).node_losses, 0);
}

TEST_F(JobLossRecoveryTest, R13_LossesOfEarlierRoundsAreKept) {
  dies("b");
  sends_stopped("a");
  passes(limits::kDeathGrace);
  ASSERT_EQ(class_budgets(assignment("a")).node_losses, 1);
  sends_started("a");
  coordinator_restarts();
  reconnects("a", ReportedPhase::Running);
  EXPECT_EQ(phase(), Phase::Running);
  EXPECT_EQ(job().node_loss_budget()->used(), 1);
}

TEST_F(JobLossRecoveryTest, R13_AMemberThatDiesDuringTheRecoveryIsCharged) {
  coordinator_restarts();
  reconnects("b", ReportedPhase::Running);
  dies("b");
  only_a_reconnects(ReportedPhase::Running);
  sends("a", control::Stopped{RoundNumber(1), 40001});
  passes(limits::kDeathGrace);
  expect_assignment("a", 2, 0, 2);
  EXPECT_EQ(class_budgets(assignment("a")).node_losses, 1);
}

TEST_F(JobLossRecoveryTest, R13_AUsedUpBudgetEndsTheRecoveredJob) {
  for (int i = 0; i < 5; ++i) {
    sends_stopped("b");  // each round at the end of its worker lease
    sends_stopped("a");
  }
  ASSERT_EQ(class_budgets(assignment("a")).node_losses, 5);
  coordinator_restarts();
  only_a_reconnects(ReportedPhase::Running);
  sends("a", control::Stopped{RoundNumber(6), 40001});
  expect_decided("a", false);
  EXPECT_EQ(received<control::JobResult>("a")->failure_summary,
            "a node was lost with its coordinator; node losses used: 5 of 5 (--max-node-losses)");
}

TEST_F(JobRecoveryTest, R13_ANodeThatDoesNotReturnWithinALeaseIsLost) {
  nodes(1, 3);
  a_and_b_run();
  coordinator_restarts();
  reconnects("a", ReportedPhase::Running);
  passes(limits::kNodeLease - 1ms);
  EXPECT_EQ(phase(), Phase::Recovering);
  passes(1ms);
  expect_stop("a", StopCause::NodeLost);
  sends("a", control::Stopped{RoundNumber(1), 40001});
  expect_assignment("a", 2, 0, 2);
  EXPECT_EQ(assignment("a").term, Term(100));
}

TEST_F(JobRecoveryTest, R13_TheNewestReportedRoundCounts) {
  nodes(1, 3);
  a_and_b_run();
  is_cut_off("b");
  passes(limits::kNodeLease);
  sends_stopped("a");
  expect_assignment("a", 2, 0, 2);
  sends_started("a");
  coordinator_restarts();
  reconnects("b", ReportedPhase::Stopped);
  EXPECT_EQ(phase(), Phase::Recovering);
  reconnects("a", ReportedPhase::Running);
  EXPECT_EQ(phase(), Phase::Stopping) << "b joins, and is not of round 2";
  EXPECT_EQ(job().round(), RoundNumber(2));
  sends("a", control::Stopped{RoundNumber(2), 40001});
  expect_assignment("a", 3, 0, 4);
  expect_assignment("b", 3, 1, 4);
}

TEST_F(JobRecoveryTest, R13_TheBudgetIsThatOfTheNewestRound) {
  a_and_b_run();
  sends_failed("a");
  all({"a", "b"}, &JobRecoveryTest::sends_stopped);
  coordinator_restarts();
  reconnects("a", ReportedPhase::Running);
  reconnects("b", ReportedPhase::Running);
  EXPECT_EQ(job().budget().used(), 1);
}

TEST_F(JobRecoveryTest, R13_ALateNodeStillReportsRestarts) {
  nodes(1, 3);
  a_and_b_run();
  coordinator_restarts();
  reconnects("a", ReportedPhase::Running);
  passes(limits::kNodeLease);
  sends("a", control::Stopped{RoundNumber(1), 40001});
  ASSERT_EQ(assignment("a").restart_count, 0);
  player("b").facts.assignment->restart_count = 1;
  player("b").facts.assignment->hang_restarts = 2;
  reconnects("b", ReportedPhase::Stopped);
  EXPECT_EQ(job().budget().used(), 1);
  EXPECT_EQ(job().hang_restart_budget().used(), 2);
}

TEST_F(JobRecoveryTest, R13_AReportedFailureIsChargedOnce) {
  a_and_b_run();
  sends_failed("a");
  coordinator_restarts();
  for (const char* name : {"a", "b"}) {
    player(name).facts.charged = control::RestartCharge::Failure;
    reconnects(name, ReportedPhase::Stopped);
  }
  passes(limits::kNodeLease);
  EXPECT_EQ(assignment("a").restart_count, 1);
  EXPECT_EQ(assignment("a").round, RoundNumber(2));
}

TEST_F(JobRecoveryTest, R13_AFailureThatExhaustedTheBudgetEndsTheJob) {
  job_spec.max_restarts = 0;
  a_and_b_run();
  sends_failed("a");
  coordinator_restarts();
  for (const char* name : {"a", "b"}) {
    player(name).facts.charged = control::RestartCharge::Failure;
    reconnects(name, ReportedPhase::Stopped);
  }
  passes(limits::kNodeLease);
  expect_decided("a", false);
}

TEST_F(JobRecoveryTest, R13_AReportedOutcomeIsTheOutcome) {
  a_and_b_run();
  all({"a", "b"}, &JobRecoveryTest::sends_done);
  coordinator_restarts();
  player("a").facts.decided = control::JobResult{true, ""};
  reconnects("a", ReportedPhase::Done);
  reconnects("b", ReportedPhase::Done);
  expect_decided("b", true);
}

TEST_F(JobRecoveryTest, R10_AForeignOutcomeIsNoOutcomeOfTheJob) {
  coordinator_restarts();
  join("a");
  Player& foreign = player("x");
  foreign.facts.decided = control::JobResult{true, ""};
  foreign.facts.term = Term(8);
  control::RankAssignment made;
  made.term = Term(8);
  made.round = RoundNumber(5);
  made.group_size = 1;
  made.job_key = "a key of its own";
  foreign.facts.assignment = made;
  reconnects("x", ReportedPhase::Running);
  EXPECT_FALSE(received<control::JobResult>("a"));
  EXPECT_FALSE(player("x").session);
  join("a");
  join("b");
  passes(limits::kLastCall);
  EXPECT_EQ(round_of("a"), RoundNumber(1)) << "the job begins as if nothing had been reported";
  EXPECT_FALSE(received<control::JobResult>("a"));
}

TEST_F(JobRecoveryTest, R10_OnlyMembersReportAnOutcome) {
  coordinator_restarts();
  player("x").facts.decided = control::JobResult{true, ""};
  join("x");
  expect_refused("x", "make no sense");
}

TEST_F(JobRecoveryTest, R10_AnOutcomeReachesOnlyTheMembersOfItsJob) {
  a_and_b_run();
  all({"a", "b"}, &JobTest::sends_done);
  coordinator_restarts();
  join("c");
  player("a").facts.decided = control::JobResult{true, ""};
  reconnects("a", ReportedPhase::Done);
  EXPECT_FALSE(received<control::JobResult>("a")) << "no agent confirms it yet";
  reconnects("b", ReportedPhase::Done);
  expect_decided("b", true);
  EXPECT_FALSE(received<control::JobResult>("c"));
  EXPECT_FALSE(player("c").session) << "it comes again, and begins the next job";
}

TEST_F(JobRecoveryTest, R10_AnUnconfirmedOutcomeEndsNothingButItsReporter) {
  a_and_b_run();
  coordinator_restarts();
  player("a").facts.decided = control::JobResult{true, ""};
  reconnects("a", ReportedPhase::Stopped);
  passes(limits::kNodeLease);
  EXPECT_FALSE(player("a").session);
  EXPECT_TRUE(core.jobs().empty());
}

TEST_F(JobRecoveryTest, R10_SparesDoNotLearnTheKeyOfTheJob) {
  a_and_b_run();
  join("c");
  join("d");
  EXPECT_FALSE(assignment("a").job_key.empty());
  EXPECT_EQ(assignment("a").job_key, assignment("b").job_key);
  sends_failed("a");
  all({"a", "b"}, &JobTest::sends_stopped);
  EXPECT_EQ(assignment("a").job_key, assignment("b").job_key);
  for (const auto& message : player("d").received) {
    EXPECT_FALSE(std::holds_alternative<control::RankAssignment>(message));
  }
}

TEST_F(JobRecoveryTest, R10_RestartsThatAForeignAgentReportsDoNotCount) {
  nodes(1, 3);
  a_and_b_run();
  coordinator_restarts();
  reconnects("a", ReportedPhase::Running);
  passes(limits::kNodeLease);
  Player& foreign = player("x");
  foreign.facts.term = Term(7);
  foreign.facts.assignment = player("b").facts.assignment;
  foreign.facts.assignment->restart_count = 3;
  foreign.facts.assignment->job_key = "a key of its own";
  reconnects("x", ReportedPhase::Stopped);
  EXPECT_EQ(job().budget().used(), 0);
}

TEST_F(JobRecoveryTest, R13_ANewNodeWaitsUntilTheOthersReturned) {
  nodes(1, 3);
  a_and_b_run();
  coordinator_restarts();
  join("c");
  reconnects("a", ReportedPhase::Running);
  passes(1s);
  expect_no_assignment("c");
  reconnects("b", ReportedPhase::Running);
  expect_stop("a", StopCause::Growth);
  EXPECT_TRUE(received<control::Registered>("c"));
}

TEST_F(JobRecoveryTest, R13_ARoundWhoseStoreWasTheCoordinatorsEnds) {
  job_spec.is_agent_store = true;
  a_and_b_run();
  coordinator_restarts();
  reconnects("a", ReportedPhase::Running);
  reconnects("b", ReportedPhase::Running);
  expect_stop("a", StopCause::NodeLost);
}

TEST_F(JobRecoveryTest, R13_TheTermIsGreaterThanAnyReportedTerm) {
  a_and_b_run();
  coordinator_restarts(3);  // the clock was set back: its rounds count like those of others
  reconnects("a", ReportedPhase::Running);
  reconnects("b", ReportedPhase::Running);
  EXPECT_TRUE(received<control::Registered>("a"));
}

TEST_F(JobRecoveryTest, R13_TermsOfARestartNeverEqualThoseOfAStandby) {
  a_and_b_run();
  coordinator_restarts(2);
  const control::Register known = player("a").facts;
  reconnects("a", ReportedPhase::Running);
  const Term first = job().term();
  coordinator_restarts(3);
  player("a").facts = known;  // no node knows the one before
  reconnects("a", ReportedPhase::Running);
  EXPECT_NE(job().term(), first);
  EXPECT_GT(first, Term(known.term.value + 900)) << "standbys count by ones";
}

TEST_F(JobRecoveryTest, R13_RejectsAnInvalidAssignment) {
  a_and_b_run();
  coordinator_restarts();
  player("a").facts.assignment->group_rank = 2;
  reconnects("a", ReportedPhase::Running);
  expect_refused("a", "make no sense");
}

TEST_F(JobRecoveryTest, R13_AJobThatEndedHereIsNotRecovered) {
  a_and_b_run();
  is_cut_off("b");
  sends_failed("a", 1, true);
  sends_stopped("a");
  passes(limits::kNodeLease);
  acks("a");
  leaves("a");
  player("b").facts.assignment = assignment("b");
  player("b").facts.term = Term(7);
  join("c");
  player("b").received.clear();
  reconnects("b", ReportedPhase::Stopped);
  EXPECT_NE(phase(), Phase::Recovering);
}

TEST_F(JobRecoveryTest, R13_ANodeThatWasCutOffThroughoutReceivesTheOutcome) {
  a_and_b_run();
  coordinator_restarts();
  reconnects("a", ReportedPhase::Stopped);
  passes(limits::kNodeLease);
  join("c");
  ASSERT_EQ(round_of("c"), RoundNumber(2));
  for (const char* name : {"a", "c"}) sends_done(name);
  for (const char* name : {"a", "c"}) acks(name);
  for (const char* name : {"a", "c"}) leaves(name);
  reconnects("b", ReportedPhase::Stopped);
  expect_decided("b", true);
}

}  // namespace
}  // namespace cpprun::test
