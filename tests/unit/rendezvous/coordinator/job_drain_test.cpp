// Stopping on request: effects on the other nodes, the restart budget and the job.
#include "common/exit_code.hpp"
#include "common/limits/rendezvous.hpp"
#include "rendezvous/observe/status.hpp"
#include "tests/unit/rendezvous/coordinator/support_job.hpp"

namespace cpprun::test {
namespace {

using control::ReportedPhase;
using control::StopCause;

TEST_F(JobTest, Drain_StopsAllTogetherSoThatTheySaveTheSameStep) {
  nodes(1, 2);
  a_and_b_run();
  drains("b");
  expect_stop("a", StopCause::Drain);
  EXPECT_EQ(phase(), Phase::Stopping);
  EXPECT_NE(status_json(core).find("\"draining\""), std::string::npos);
  sends_saved("a");
  expect_assignment("a", 1, 0, 4);
  leaves_saved("b");
  expect_assignment("a", 2, 0, 2);
  EXPECT_EQ(assignment("a").restart_count, 0) << "it costs nothing";
}

TEST_F(JobTest, Drain_TheOthersContinueWhetherTheySavedOrNot) {
  nodes(1, 2);
  a_and_b_run();
  drains("b");
  leaves("b");
  sends_stopped("a");
  expect_assignment("a", 2, 0, 2);
}

TEST_F(JobTest, Drain_ASpareTakesThePlace) {
  a_and_b_run();
  join("c");
  drains("b");
  leaves_saved("b");
  sends_saved("a");
  expect_assignment("a", 2, 0, 4);
  expect_assignment("c", 2, 1, 4);
}

TEST_F(JobTest, Drain_TooFewNodesRemainAndEverythingIsSaved) {
  a_and_b_run();
  drains("b");
  leaves_saved("b");
  sends_saved("a");
  expect_decided("a", false);
  EXPECT_TRUE(received<control::JobResult>("a")->is_resumable);
  EXPECT_EQ(received<control::JobResult>("a")->failure_summary, "b was asked to stop");
  acks("a");
  EXPECT_NE(received<control::Bye>("a"), nullptr);
}

TEST_F(JobTest, Drain_TooFewNodesRemainAndSomethingIsNotSaved) {
  a_and_b_run();
  drains("b");
  leaves("b");
  sends_saved("a");
  EXPECT_EQ(received<control::JobResult>("a"), nullptr) << "it waits for another node, as ever";
  EXPECT_EQ(phase(), Phase::WaitingForNodes);
  join("c");
  expect_assignment("a", 2, 0, 4);
}

TEST_F(JobTest, Drain_ANodeThatDiesMeanwhileHasNotSaved) {
  a_and_b_run();
  drains("b");
  sends_saved("a");
  dies("b");
  passes(limits::kDeathGrace);
  EXPECT_EQ(received<control::JobResult>("a"), nullptr);
  EXPECT_EQ(phase(), Phase::WaitingForNodes);
}

TEST_F(JobTest, Drain_OfAllNodesTogether) {
  nodes(1, 2);
  a_and_b_run();
  drains("a");
  drains("b");
  leaves_saved("a");
  leaves_saved("b");
  EXPECT_TRUE(job().is_over());
}

TEST_F(JobTest, Drain_ADrainedNodeJoinsNoLaterRound) {
  nodes(1, 2);
  a_and_b_run();
  drains("b");
  sends_saved("a");
  sends("b", control::Stopped{RoundNumber(1), 1, {}, true});
  expect_assignment("a", 2, 0, 2);
}

TEST_F(JobTest, Drain_OfTheHostEndsTheJobForAll) {
  nodes(1, 2);
  player("a").hello.node.incarnation = kEmbedded;
  a_and_b_run();
  drains("a");
  leaves_saved("a");
  sends_saved("b");
  expect_decided("b", false);
  EXPECT_TRUE(received<control::JobResult>("b")->is_resumable)
      << "no round without its coordinator";
}

TEST_F(JobTest, Drain_OfTheHostAfterAnotherNode) {
  nodes(1, 3);
  player("a").hello.node.incarnation = kEmbedded;
  join("c");
  a_and_b_run();
  drains("b");
  drains("a");
  leaves_saved("a");
  leaves_saved("b");
  sends_saved("c");
  expect_decided("c", false);
  EXPECT_TRUE(received<control::JobResult>("c")->is_resumable);
}

TEST_F(JobTest, Drain_OfTheHostWhoseLeaveIsLost) {
  nodes(1, 2);
  player("a").hello.node.incarnation = kEmbedded;
  a_and_b_run();
  drains("a");
  EXPECT_EQ(received<control::Stop>("a"), nullptr)
      << "unread input would turn the close after its leave message into a reset";
  is_cut_off("a");
  sends_saved("b");
  EXPECT_FALSE(core.may_exit());
  passes(limits::kDeathGrace);
  EXPECT_TRUE(core.may_exit()) << "a has no lease that could end";
  EXPECT_EQ(round_of("b"), RoundNumber(1)) << "another round would end with this process";
}

TEST_F(JobTest, Drain_FailuresThatFollowCostNothing) {
  job_spec.max_restarts = 0;
  nodes(1, 2);
  a_and_b_run();
  drains("b");
  sends_failed("a", kStoppedResumable);
  sends_failed("a", 1);
  leaves("b");
  sends_stopped("a");
  expect_assignment("a", 2, 0, 2);
  EXPECT_EQ(job().budget().used(), 0);
}

TEST_F(JobTest, Drain_TheResumableCodeWithoutARequestIsAFailure) {
  a_and_b_run();
  sends_failed("a", kStoppedResumable);
  expect_stop("b", StopCause::Failure);
  EXPECT_EQ(job().budget().used(), 1);
}

TEST_F(JobTest, Drain_AFailureInTheNextRoundCounts) {
  nodes(1, 2);
  a_and_b_run();
  drains("b");
  leaves_saved("b");
  sends_saved("a");
  sends_failed("a");
  EXPECT_EQ(job().budget().used(), 1);
  sends_saved("a");
  expect_assignment("a", 3, 0, 2);
}

TEST_F(JobTest, Drain_MayArriveWithARegistration) {
  nodes(1, 2);
  a_and_b_run();
  is_cut_off("b");
  player("b").facts.is_draining = true;
  returns("b", ReportedPhase::Running, 1);
  expect_stop("a", StopCause::Drain);
}

TEST_F(JobTest, Drain_WhileTheRoundStopsForAnotherReason) {
  nodes(1, 2);
  a_and_b_run();
  sends_failed("a");
  drains("b");
  leaves("b");
  sends_stopped("a");
  expect_assignment("a", 2, 0, 2);
  EXPECT_EQ(job().budget().used(), 1);
}

}  // namespace
}  // namespace cpprun::test
