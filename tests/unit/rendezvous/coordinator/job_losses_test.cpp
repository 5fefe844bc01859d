// Nodes that leave, disconnect, fall silent and return: R4, R5, R10.
#include "common/limits/rendezvous.hpp"
#include "tests/unit/rendezvous/coordinator/support_job.hpp"

namespace cpprun::test {
namespace {

using control::ReportedPhase;
using control::StopCause;

TEST_F(JobTest, R4_FinIsEvidenceAndTheNextRoundWaitsForTheGrace) {
  nodes(1, 2);
  a_and_b_run();
  dies("b");
  expect_stop("a", StopCause::NodeLost);
  sends_stopped("a");
  passes(limits::kDeathGrace - 1ms);
  expect_assignment("a", 1, 0, 4);
  passes(1ms);
  expect_assignment("a", 2, 0, 2);
}

TEST_F(JobTest, R4_AResetOnlyStartsASilence) {
  a_and_b_run();
  is_cut_off("b");
  passes(limits::kNodeLease - 1ms);
  EXPECT_EQ(phase(), Phase::Running);
  returns("b", ReportedPhase::Running, 1);
  passes(60s);
  EXPECT_EQ(phase(), Phase::Running);
  EXPECT_EQ(count_of<control::RankAssignment>(player("b").received), 1);
}

TEST_F(JobTest, R4_AnOlderConnectionChangesNothing) {
  a_and_b_run();
  SessionId old = *player("b").session;
  returns("b", ReportedPhase::Running, 1);
  call([&](Effects& e) {
    core.on_message(now, old, control::Leave{"an old word"}, e);
    core.on_message(now, old, control::Stopped{RoundNumber(1), 1}, e);
    core.on_closed(now, old, Ending::Fin, e);
    core.on_message(now, old, control::Done{RoundNumber(1)}, e);
  });
  EXPECT_EQ(phase(), Phase::Running);
  EXPECT_EQ(received<control::Stop>("a"), nullptr);
}

TEST_F(JobTest, R4_ALeaveNeedsNoGrace) {
  nodes(1, 2);
  a_and_b_run();
  leaves("b");
  expect_stop("a", StopCause::NodeLeft);
  sends_stopped("a");
  expect_assignment("a", 2, 0, 2);
}

TEST_F(JobTest, AnUnusableNodeCostsNoRestart) {
  nodes(1, 2);
  a_and_b_run();
  is_unusable("b");
  expect_stop("a", StopCause::NodeLeft);
  sends_stopped("a");
  expect_assignment("a", 2, 0, 2);
  EXPECT_EQ(assignment("a").restart_count, 0);
}

TEST_F(JobTest, AStoppingRoundDoesNotWaitForAnUnusableNode) {
  nodes(1, 2);
  a_and_b_run();
  sends_failed("a");
  sends_stopped("a");
  expect_assignment("a", 1, 0, 4);
  is_unusable("b");
  expect_assignment("a", 2, 0, 2);
  EXPECT_EQ(assignment("a").restart_count, 1) << "for the worker's failure, and for nothing else";
}

TEST_F(JobTest, ASpareReplacesAnUnusableNode) {
  nodes(2, 2);
  a_and_b_run();
  join("c");
  is_unusable("b");
  sends_stopped("a");
  expect_assignment("a", 2, 0, 4);
  expect_assignment("c", 2, 1, 4);
}

TEST_F(JobTest, WithoutASpareAnUnusableNodeEndsTheJob) {
  nodes(2, 2);
  a_and_b_run();
  is_unusable("b");
  EXPECT_FALSE(received<control::JobResult>("a")) << "its workers live";
  sends_stopped("a");
  ASSERT_TRUE(received<control::JobResult>("a"));
  EXPECT_FALSE(received<control::JobResult>("a")->is_success);
  EXPECT_EQ(received<control::JobResult>("a")->failure_summary,
            "b left (it is unusable: SIGKILL did not end rank 1), and 1 of at least 2 nodes "
            "joined: a; 1 missing");
}

TEST_F(JobTest, TheJobWaitsForADisconnectedSpareToReplaceAnUnusableNode) {
  nodes(2, 2);
  a_and_b_run();
  join("c");
  is_cut_off("c");
  is_unusable("b");
  sends_stopped("a");
  EXPECT_FALSE(received<control::JobResult>("a")) << "it may be back";
  passes(limits::kNodeLease);
  EXPECT_TRUE(received<control::JobResult>("a"));
}

TEST_F(JobTest, AnUnusableNodeOutsideTheRoundEndsNoJob) {
  nodes(2, 2);
  a_and_b_run();
  join("c");
  is_unusable("c");
  dies("b");
  sends_stopped("a");
  passes(limits::kDeathGrace);
  EXPECT_FALSE(received<control::JobResult>("a"));
}

TEST_F(JobTest, R4_MessagesAfterALeaveChangeNothing) {
  a_and_b_run();
  leaves("b");
  sends("b", control::Ping{1});
  sends("b", control::Done{RoundNumber(1)});
  sends("b", player("b").facts);
  EXPECT_EQ(phase(), Phase::Stopping);
}

TEST_F(JobTest, R4_TheRemainingNodesLearnTheReasonToWait) {
  nodes(2, 2);
  a_and_b_run();
  dies("b");
  sends_stopped("a");
  forget("a");
  passes(limits::kDeathGrace);
  ASSERT_NE(received<control::Wait>("a"), nullptr);
  EXPECT_EQ(received<control::Wait>("a")->why, "1 of at least 2 nodes joined: a; 1 missing");
}

TEST_F(JobTest, R5_ASilentNodeIsLostAfterItsLease) {
  nodes(1, 2);
  a_and_b_run();
  passes(10s);
  player("b").is_silent = true;
  passes(limits::kNodeLease + 1s);
  expect_stop("a", StopCause::NodeLost);
  EXPECT_FALSE(player("b").session) << "a half-open connection is reset";
  sends_stopped("a");
  expect_assignment("a", 2, 0, 2);
}

TEST_F(JobTest, R5_AnyMessageRenewsTheLease) {
  a_and_b_run();
  player("b").is_silent = true;
  for (int i = 0; i < 10; ++i) {
    passes(limits::kNodeLease - 1ms);
    sends_started("b");
  }
  EXPECT_EQ(phase(), Phase::Running);
}

TEST_F(JobTest, R5_AWaitingNodeIsLostToo) {
  nodes(2, 3);
  join("a");
  is_cut_off("a");
  passes(limits::kNodeLease);
  join("b");
  passes(60s);
  expect_no_assignment("b");
}

TEST_F(JobTest, R6_TheLocalAgentHasNeitherNodeLeaseNorWorkerLease) {
  nodes(1, 1);
  player("a").hello.node.incarnation = kEmbedded;
  player("a").is_silent = true;
  join("a");
  EXPECT_EQ(received<control::Registered>("a")->heartbeat, 0s);
  sends_started("a");
  EXPECT_TRUE(core.next_deadline().is_never());
  passes(3600s);
  EXPECT_EQ(phase(), Phase::Running);
}

TEST_F(JobTest, R6_TheWorkerLeaseKeepsInequalityI1ForEveryLease) {
  for (Duration lease : {1000ms, 1200ms, 1830ms, 2000ms, 5000ms, 60'000ms, 100'000'000'000ms}) {
    run_id = "lease " + std::to_string(lease.count());
    job_spec.lease = lease;
    job_spec.heartbeat = lease / 3;
    std::string name = run_id + " a";
    join(name);
    sends(name, control::Ping{1});
    double worker_lease = to_seconds(received<control::Pong>(name)->worker_lease);
    double length = to_seconds(lease);
    EXPECT_LT(worker_lease * 1.02 + 0.3, length * 0.98) << run_id;
    EXPECT_LE(worker_lease, length * 0.8 + 1e-6);
    double notice = worker_lease < 2 ? worker_lease / 2 : 1;
    EXPECT_LE(2 * to_seconds(received<control::Registered>(name)->heartbeat),
              worker_lease - notice + 1e-6);
  }
}

TEST_F(JobTest, R10_ARestartedAgentIsAnotherNode) {
  a_and_b_run();
  join("b2");
  EXPECT_TRUE(received<control::Wait>("b2")->is_spare);
  dies("b");
  sends_stopped("a");
  passes(limits::kDeathGrace);
  expect_assignment("b2", 2, 1, 4);
}

TEST_F(JobTest, R10_RejectsTheSameIdentityTwice) {
  join("a");
  player("twin").hello.node = player("a").hello.node;
  join("twin");
  expect_refused("twin", "same identity");
  EXPECT_TRUE(player("a").session);
}

// ---------------------------------------------------------------- returning in every state

TEST_F(JobTest, Back_WhileGathering) {
  join("a");
  is_cut_off("a");
  join("b");
  expect_no_assignment("b");
  returns("a", ReportedPhase::Idle, 0);
  expect_assignment("a", 1, 0, 4);
}

TEST_F(JobTest, Back_BeforeTheOldConnectionBreaks) {
  join("a");
  returns("a", ReportedPhase::Idle, 0);
  join("b");
  expect_assignment("a", 1, 0, 4);
  EXPECT_EQ(core.session_count(), 2U);
}

TEST_F(JobTest, Back_StoppedWhileTheRoundRuns) {
  a_and_b_run();
  is_cut_off("b");
  passes(4s);
  returns("b", ReportedPhase::Stopped, 1);  // its worker lease had ended
  expect_stop("a", StopCause::NodeLost);
  sends_stopped("a");
  expect_assignment("b", 2, 1, 4);
  EXPECT_EQ(assignment("b").restart_count, 0);
}

TEST_F(JobTest, Back_DoneWhileTheRoundRuns) {
  a_and_b_run();
  is_cut_off("b");
  sends_done("a");
  EXPECT_EQ(phase(), Phase::Running);
  returns("b", ReportedPhase::Done, 1);
  expect_decided("a", true);
  expect_decided("b", true);
}

TEST_F(JobTest, Back_RunningOrDoneWhileTheRoundStops) {
  for (ReportedPhase reported_phase : {ReportedPhase::Running, ReportedPhase::Done}) {
    run_id = reported_phase == ReportedPhase::Done ? "done" : "running";
    join(run_id + " a");
    join(run_id + " b");
    is_cut_off(run_id + " b");
    sends_failed(run_id + " a");
    sends_stopped(run_id + " a");
    returns(run_id + " b", reported_phase, 1);
    EXPECT_EQ(phase(), Phase::Stopping);
    EXPECT_TRUE(received<control::Stop>(run_id + " b"));
    sends_stopped(run_id + " b");
    expect_assignment(run_id + " b", 2, 1, 4);
  }
}

TEST_F(JobTest, Back_StoppedWhileTheRoundStops) {
  a_and_b_run();
  is_cut_off("b");
  sends_failed("a");
  sends_stopped("a");
  returns("b", ReportedPhase::Stopped, 1);
  expect_assignment("b", 2, 1, 4);
}

TEST_F(JobTest, Back_AfterItWasLost) {
  nodes(1, 2);
  a_and_b_run();
  is_cut_off("b");
  passes(limits::kNodeLease);
  sends_stopped("a");
  expect_assignment("a", 2, 0, 2);
  sends_started("a");
  returns("b", ReportedPhase::Running, 1);
  ASSERT_TRUE(received<control::Stop>("b"));
  EXPECT_EQ(received<control::Stop>("b")->round, RoundNumber(1));
  EXPECT_EQ(phase(), Phase::Running) << "it can't join before it has stopped";
  sends("b", control::Stopped{RoundNumber(1), 40002});
  passes(limits::kScaleUpInterval);
  sends_stopped("a");
  expect_assignment("a", 3, 0, 4);
  expect_assignment("b", 3, 1, 4);
}

TEST_F(JobTest, Back_LostWhileStoppingAndBackAtOnce) {
  a_and_b_run();
  sends_failed("a");
  is_cut_off("b");
  passes(limits::kNodeLease);
  returns("b", ReportedPhase::Running, 1);
  expect_stop("b", StopCause::NodeLost);
  sends_stopped("b");
  sends_stopped("a");
  expect_assignment("b", 2, 1, 4);
}

TEST_F(JobTest, Back_WithAKnownFailure) {
  a_and_b_run();
  sends_failed("b");
  sends_stopped("b");
  control::Failed again{RoundNumber(1), {}, false};
  again.end.exit_code = 1;
  returns("b", ReportedPhase::Running, 1);  // it cannot know that its report arrived
  sends("b", again);
  sends("b", control::Stopped{RoundNumber(1), 40002});
  sends_stopped("a");
  expect_assignment("b", 2, 1, 4);
  EXPECT_EQ(assignment("b").restart_count, 1);
}

TEST_F(JobTest, Back_WithAFailureFromBeforeAMissedAssignment) {
  a_and_b_run();
  sends_failed("b");
  sends_stopped("b");
  sends_stopped("a");
  expect_assignment("b", 2, 1, 4);
  is_cut_off("b");  // before it received that assignment
  forget("b");
  control::Failed again{RoundNumber(1), {}, false};
  returns("b", ReportedPhase::Running, 1);
  sends("b", again);
  sends("b", control::Stopped{RoundNumber(1), 40002});
  expect_assignment("b", 2, 1, 4);
  EXPECT_EQ(phase(), Phase::Running);
  EXPECT_EQ(job().budget().used(), 1);
}

TEST_F(JobTest, Lost_TheWholeJob) {
  a_and_b_run();
  is_cut_off("a");
  is_cut_off("b");
  passes(limits::kNodeLease);
  EXPECT_TRUE(core.jobs().empty());
  EXPECT_EQ(dropped.back(), run_id);
  EXPECT_TRUE(core.next_deadline().is_never());
}

TEST_F(JobTest, Lost_WhileForming) {
  nodes(3, 3);
  join("a");
  join("b");
  dies("b");
  join("c");
  expect_no_assignment("a");
  join("d");
  expect_assignment("d", 1, 2, 6);
}

TEST_F(JobTest, Lost_JoinsAndLeavesInALoop) {
  nodes(2, 3);
  join("a");
  for (int i = 0; i < 200; ++i) {
    join("loop" + std::to_string(i));
    if (i % 2 == 0) leaves("loop" + std::to_string(i));
    dies("loop" + std::to_string(i));
  }
  EXPECT_EQ(job().nodes().size(), 1U);
  EXPECT_EQ(core.session_count(), 1U);
}

}  // namespace
}  // namespace cpprun::test
