// Restart budget, success, failure and the delivery of the outcome (R7, R8, R9), and the stores.
#include "common/limits/rendezvous.hpp"
#include "tests/unit/rendezvous/coordinator/support_job.hpp"

namespace cpprun::test {
namespace {

using control::ReportedPhase;
using control::StopCause;

// ---------------------------------------------------------------- the restart budget

TEST_F(JobTest, R7_ARoundCostsOneRestartForAnyNumberOfFailures) {
  a_and_b_run();
  sends_failed("a");
  sends_failed("a");
  sends_failed("b");
  all({"a", "b"}, &JobTest::sends_stopped);
  EXPECT_EQ(assignment("a").restart_count, 1);
  EXPECT_EQ(assignment("b").restart_count, 1);
  EXPECT_EQ(assignment("b").max_restarts, 3);
}

TEST_F(JobTest, R7_AnOldFailureCostsNothing) {
  a_and_b_run();
  sends_failed("a");
  all({"a", "b"}, &JobTest::sends_stopped);
  control::Failed old{RoundNumber(1), {}, false};
  sends("a", old);
  EXPECT_EQ(phase(), Phase::Running);
  EXPECT_EQ(job().budget().used(), 1);
}

TEST_F(JobTest, R7_LossesAndGrowthCostNothing) {
  job_spec.max_restarts = 0;
  nodes(1, 4);
  a_and_b_run();
  join("c");
  all({"a", "b"}, &JobTest::sends_stopped);
  dies("c");
  all({"a", "b"}, &JobTest::sends_stopped);
  passes(limits::kDeathGrace);
  expect_assignment("a", 3, 0, 4);
  EXPECT_EQ(assignment("a").restart_count, 0);
}

TEST_F(JobTest, R7_AFailureDuringGrowthIsCharged) {
  nodes(1, 4);
  a_and_b_run();
  join("c");
  sends_failed("b");
  all({"a", "b"}, &JobTest::sends_stopped);
  EXPECT_EQ(assignment("c").restart_count, 1);
}

TEST_F(JobTest, R7_HangsAreCountedSeparately) {
  job_spec.max_restarts = 1;
  a_and_b_run();
  WorkerExit hung;
  hung.hang = "no heartbeat for 9.0 s";
  sends("a", control::Failed{RoundNumber(1), hung, false});
  sends_failed("b", -6);  // its peer has gone: charged already
  all({"a", "b"}, &JobTest::sends_stopped);
  EXPECT_EQ(assignment("a").restart_count, 0);
  EXPECT_EQ(assignment("a").hang_restarts, 1);
  sends_failed("b");
  all({"a", "b"}, &JobTest::sends_stopped);
  EXPECT_EQ(assignment("a").restart_count, 1);
  sends("a", control::Failed{RoundNumber(3), hung, false});
  all({"a", "b"}, &JobTest::sends_stopped);
  const auto* decided = received<control::JobResult>("a");
  ASSERT_TRUE(decided);
  EXPECT_EQ(
      decided->failure_summary,
      "rank 0 (pid 0, on a) hung (no heartbeat for 9.0 s); restarts used after hangs: 1 of 1");
}

TEST_F(JobTest, R7_AnExhaustedBudgetEndsTheJob) {
  job_spec.max_restarts = 1;
  a_and_b_run();
  sends_failed("b");
  all({"a", "b"}, &JobTest::sends_stopped);
  sends_failed("b", -9);
  sends_stopped("b");
  EXPECT_EQ(phase(), Phase::Stopping) << "no node receives the result before all have stopped";
  sends_stopped("a");
  expect_decided("a", false);
  expect_decided("b", false);
  EXPECT_EQ(received<control::JobResult>("a")->failure_summary,
            "rank 2 (pid 4711, on b) was killed by SIGKILL; restarts used: 1 of 1");
}

TEST_F(JobTest, R7_AFatalStartFailureIsNotRepeated) {
  a_and_b_run();
  sends_failed("a", 0, true);
  all({"a", "b"}, &JobTest::sends_stopped);
  expect_decided("b", false);
  EXPECT_EQ(received<control::JobResult>("b")->failure_summary,
            "a worker could not be started on a; restarts used: 0 of 3");
}

TEST_F(JobTest, R7_AnExhaustedBudgetEndsTheJobThoughTheNodeIsGone) {
  job_spec.max_restarts = 0;
  nodes(1, 2);
  a_and_b_run();
  sends_failed("b");
  dies("b");
  sends_stopped("a");
  passes(limits::kDeathGrace);
  expect_decided("a", false);
}

// ---------------------------------------------------------------- success

TEST_F(JobTest, R8_AllDoneIsSuccess) {
  a_and_b_run();
  sends_done("a");
  EXPECT_EQ(received<control::JobResult>("a"), nullptr);
  sends_done("b");
  expect_decided("a", true);
  expect_decided("b", true);
}

TEST_F(JobTest, R8_AnEarlySuccessDoesNotHideAnotherNodesFailure) {
  job_spec.max_restarts = 0;
  a_and_b_run();
  sends_done("a");
  sends_failed("b");
  expect_stop("a", StopCause::Failure);
  all({"a", "b"}, &JobTest::sends_stopped);
  expect_decided("a", false);
  expect_decided("b", false);
}

TEST_F(JobTest, R8_DoneWorkIsRepeatedWithTheRest) {
  a_and_b_run();
  sends_done("a");
  sends_failed("b");
  all({"a", "b"}, &JobTest::sends_stopped);
  expect_assignment("a", 2, 0, 4);
  sends_done("b");
  EXPECT_EQ(phase(), Phase::Running) << "a's old done counts for nothing";
  sends_done("a");
  expect_decided("b", true);
}

TEST_F(JobTest, R8_ANodeLostAfterItsDoneEndsNothing) {
  for (bool politely : {true, false}) {
    run_id = politely ? "fin" : "silence";
    join(run_id + " a");
    join(run_id + " b");
    sends_done(run_id + " a");
    ends(run_id + " a", politely ? Ending::Fin : Ending::Reset);
    passes(20s);
    EXPECT_EQ(phase(), Phase::Running);
    sends_done(run_id + " b");
    expect_decided(run_id + " b", true);
  }
}

TEST_F(JobTest, R8_ADoneThatCrossesAStopIsStopped) {
  a_and_b_run();
  sends_failed("b");
  sends_done("a");
  EXPECT_EQ(count_of<control::Stop>(player("a").received), 2);
  all({"a", "b"}, &JobTest::sends_stopped);
  expect_assignment("a", 2, 0, 4);
}

// ---------------------------------------------------------------- delivery of the outcome

TEST_F(JobTest, R9_ByeOnlyWhenAllHaveAcknowledged) {
  a_and_b_run();
  all({"a", "b"}, &JobTest::sends_done);
  acks("a");
  EXPECT_EQ(received<control::Bye>("a"), nullptr);
  acks("b");
  EXPECT_NE(received<control::Bye>("a"), nullptr);
  EXPECT_NE(received<control::Bye>("b"), nullptr);
}

TEST_F(JobTest, R9_ARepeatedStoppedAcknowledgesNothing) {
  job_spec.max_restarts = 0;
  a_and_b_run();
  sends_failed("a");
  all({"a", "b"}, &JobTest::sends_stopped);
  expect_decided("b", false);
  sends_stopped("a");
  acks("b");
  EXPECT_EQ(received<control::Bye>("b"), nullptr);
  acks("a");
  EXPECT_NE(received<control::Bye>("b"), nullptr);
}
TEST_F(JobTest, R2_AnAcknowledgementOfNothingStopsNoNode) {
  a_and_b_run();
  sends_failed("a");
  sends_stopped("a");
  acks("b");
  EXPECT_EQ(phase(), Phase::Stopping);
  EXPECT_EQ(round_of("a"), RoundNumber(1));
}
TEST_F(JobTest, R9_DeadAndLostNodesNeedNotAcknowledge) {
  nodes(3, 3);
  join("a");
  join("b");
  join("c");
  for (const char* name : {"a", "b", "c"}) sends_done(name);
  acks("a");
  dies("b");
  is_cut_off("c");
  passes(limits::kNodeLease);
  EXPECT_NE(received<control::Bye>("a"), nullptr);
}

TEST_F(JobTest, R9_AReturningNodeReceivesTheOutcome) {
  a_and_b_run();
  all({"a", "b"}, &JobTest::sends_done);
  is_cut_off("b");
  forget("b");
  acks("a");
  EXPECT_EQ(received<control::Bye>("a"), nullptr) << "b may still reconnect";
  returns("b", ReportedPhase::Done, 1);
  expect_decided("b", true);
  acks("b");
  EXPECT_NE(received<control::Bye>("b"), nullptr);
}

// The next job of this name may have begun on its node already.
TEST_F(JobTest, R9_ANewNodeAfterTheDecisionIsNotOfThisJob) {
  a_and_b_run();
  all({"a", "b"}, &JobTest::sends_done);
  join("late");
  EXPECT_TRUE(player("late").received.empty());
  EXPECT_FALSE(player("late").session) << "it is to try again";
  all({"a", "b"}, &JobTest::acks);
  dies("a");
  dies("b");
  join("late");
  EXPECT_NE(received<control::Wait>("late"), nullptr);
}

TEST_F(JobTest, Over_TheNameOfTheJobIsFree) {
  a_and_b_run();
  all({"a", "b"}, &JobTest::sends_done);
  all({"a", "b"}, &JobTest::acks);
  dies("a");
  dies("b");
  EXPECT_TRUE(job().is_over());
  EXPECT_TRUE(core.next_deadline().is_never());
  EXPECT_EQ(dropped.back(), run_id);
  Term before = received<control::Registered>("a")->term;
  nodes(1, 1);
  join("c");
  expect_assignment("c", 1, 0, 2);
  EXPECT_GT(received<control::Registered>("c")->term, before);
}

TEST_F(JobTest, R9_ANodeThatWasCutOffAtTheEndReceivesTheOutcomeLater) {
  a_and_b_run();
  is_cut_off("b");
  passes(limits::kNodeLease);
  join("c");
  sends_stopped("a");
  all({"a", "c"}, &JobTest::sends_done);
  all({"a", "c"}, &JobTest::acks);
  dies("a");
  dies("c");
  player("b").facts.term = received<control::Registered>("b")->term;
  returns("b", ReportedPhase::Stopped, 1);
  expect_decided("b", true);
  acks("b");
  EXPECT_NE(received<control::Bye>("b"), nullptr);
}

// ---------------------------------------------------------------- the rounds' stores

TEST_F(JobTest, Stores_AFreshOneForEachRoundBeforeItsAssignments) {
  a_and_b_run();
  sends_failed("a");
  all({"a", "b"}, &JobTest::sends_stopped);
  ASSERT_EQ(served.size(), 2U);
  EXPECT_EQ(served[0].port, 50001);
  EXPECT_EQ(served[1].port, 50002);
  EXPECT_EQ(served[1].round, RoundNumber(2));
  EXPECT_EQ(assignment("b").store_port, 50002);
  EXPECT_EQ(wanted_ports, 3) << "the next one is open before it is needed";
}

TEST_F(JobTest, Stores_NoRoundBeforeThePortIsOpen) {
  are_ports_given = false;
  nodes(1, 2);
  join("a");
  passes(5s);
  join("b");
  passes(5s);
  expect_no_assignment("a");
  call([&](Effects& e) { core.on_store_port(now, run_id, 50123, e); });
  EXPECT_EQ(assignment("a").store_port, 50123);
}

TEST_F(JobTest, Stores_NoPortEndsTheJobWithAMessage) {
  are_ports_open = false;
  join("a");
  expect_decided("a", false);
  acks("a");
  EXPECT_NE(received<control::Bye>("a"), nullptr);
}

TEST_F(JobTest, Stores_AFailedPortIsRequestedAgainWhenNeeded) {
  are_ports_given = false;
  join("a");
  join("b");
  call([&](Effects& e) { core.on_store_port(now, run_id, 50123, e); });
  call([&](Effects& e) { core.on_store_port(now, run_id, 0, e); });  // the next round's
  all({"a", "b"}, &JobTest::sends_started);
  passes(1h);
  are_ports_given = true;
  sends_failed("a");
  all({"a", "b"}, &JobTest::sends_stopped);
  EXPECT_EQ(round_of("a"), RoundNumber(2));
  EXPECT_FALSE(received<control::JobResult>("a"));
}

TEST_F(JobTest, Stores_NoPortForTheNextRoundDoesNotDisturbThisOne) {
  are_ports_given = false;
  join("a");
  join("b");
  call([&](Effects& e) { core.on_store_port(now, run_id, 50123, e); });
  call([&](Effects& e) { core.on_store_port(now, run_id, 0, e); });
  EXPECT_EQ(phase(), Phase::Running);
  are_ports_given = true;
  are_ports_open = false;
  sends_failed("a");
  all({"a", "b"}, &JobTest::sends_stopped);
  expect_decided("a", false);
  EXPECT_NE(received<control::JobResult>("a")->failure_summary.find("port"), std::string::npos);
}

TEST_F(JobTest, Stores_CloseWithTheDecision) {
  a_and_b_run();
  all({"a", "b"}, &JobTest::sends_done);
  ASSERT_EQ(dropped.size(), 1U);
  all({"a", "b"}, &JobTest::acks);
  dies("a");
  dies("b");
  EXPECT_EQ(dropped, (std::vector<std::string>{run_id, run_id}));
}

TEST_F(JobTest, Stores_APortForAFinishedJobChangesNothing) {
  call([&](Effects& e) { core.on_store_port(now, "nobody", 50000, e); });
  EXPECT_TRUE(core.jobs().empty());
}

}  // namespace
}  // namespace cpprun::test
