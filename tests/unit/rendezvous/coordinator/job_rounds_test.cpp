// Forming and ending rounds: rules R1 to R3, last call, number of nodes, growth, spares.
#include "common/limits/rendezvous.hpp"
#include "tests/unit/rendezvous/coordinator/support_job.hpp"

namespace cpprun::test {
namespace {

using control::ReportedPhase;
using control::StopCause;

TEST_F(JobTest, R1_TheRoundFormsWhenMaxNodesArePresent) {
  join("a");
  expect_no_assignment("a");
  join("b");
  expect_assignment("a", 1, 0, 4);
  expect_assignment("b", 1, 1, 4);
  EXPECT_EQ(assignment("b").base_rank, 2);
  EXPECT_EQ(assignment("b").group_size, 2);
}

TEST_F(JobTest, R1_TheNumberIsGreaterThanAnyThatAMemberKnows) {
  returns("a", ReportedPhase::Idle, 41);
  join("b");
  expect_assignment("a", 42, 0, 4);
  expect_assignment("b", 42, 1, 4);
}

TEST_F(JobTest, R1_AMissedFirstAssignmentIsSentAgain) {
  join("a");
  join("b");
  control::RankAssignment assigned = assignment("b");
  is_cut_off("b");
  forget("b");
  passes(1s);
  returns("b", ReportedPhase::Idle, 0);
  expect_assignment("b", 1, 1, 4);
  EXPECT_EQ(assignment("b").master_port, assigned.master_port);
  EXPECT_EQ(received<control::Stop>("a"), nullptr);
}

TEST_F(JobTest, R1_AMissedLaterAssignmentIsSentAgain) {
  a_and_b_run();
  sends_failed("a");
  sends_stopped("a");
  sends_stopped("b");
  expect_assignment("b", 2, 1, 4);
  is_cut_off("b");
  forget("a");
  forget("b");
  returns("b", ReportedPhase::Stopped, 1);
  expect_assignment("b", 2, 1, 4);
  EXPECT_EQ(received<control::Stop>("a"), nullptr);
}

TEST_F(JobTest, R1_AMissedAssignmentOfAStoppingRoundDelaysNoNode) {
  join("a");
  join("b");
  is_cut_off("b");  // before it received the assignment
  sends_failed("a");
  sends_stopped("a");
  returns("b", ReportedPhase::Idle, 0);
  expect_assignment("a", 2, 0, 4);
  expect_assignment("b", 2, 1, 4);
}

TEST_F(JobTest, R2_NextRoundWaitsForEveryMember) {
  a_and_b_run();
  sends_failed("a");
  sends_stopped("a");
  passes(20s);
  EXPECT_EQ(phase(), Phase::Stopping);
  sends_stopped("b");
  expect_assignment("a", 2, 0, 4);
  expect_assignment("b", 2, 1, 4);
}

TEST_F(JobTest, R2_ALateStoppedIsNotOfTheNewRound) {
  a_and_b_run();
  sends_failed("a");
  control::Stopped late{round_of("a"), 40001};
  sends_stopped("b");
  sends("a", late);
  sends("a", late);  // repeated after the stop that crossed it
  sends_started("a");
  sends_started("b");
  sends_failed("b");
  sends_stopped("b");
  EXPECT_EQ(phase(), Phase::Stopping) << "a still has workers of round 2";
  sends_stopped("a");
  expect_assignment("a", 3, 0, 4);
}

TEST_F(JobTest, R2_ALaterRoundNeedsNoLastCall) {
  nodes(1, 3);
  a_and_b_run();
  sends_failed("a");
  sends_stopped("a");
  sends_stopped("b");
  expect_assignment("a", 2, 0, 4);
}

TEST_F(JobTest, R3_OneStopForAll) {
  a_and_b_run();
  sends_failed("a");
  expect_stop("a", StopCause::Failure);
  expect_stop("b", StopCause::Failure);
  sends_failed("b");
  EXPECT_EQ(count_of<control::Stop>(player("b").received), 1);
}

TEST_F(JobTest, R3_ANodeThatStoppedItselfStopsTheRound) {
  a_and_b_run();
  sends_stopped("b");  // its worker lease had ended
  expect_stop("a", StopCause::NodeLost);
  sends_stopped("a");
  expect_assignment("b", 2, 1, 4);
  EXPECT_EQ(assignment("b").restart_count, 0);
}

// ---------------------------------------------------------------- how many

TEST_F(JobTest, LastCall_OneSecondWithoutAnArrival) {
  nodes(2, 5);
  join("a");
  join("b");
  passes(900ms);
  join("c");
  passes(999ms);
  expect_no_assignment("a");
  passes(1ms);
  expect_assignment("c", 1, 2, 6);
}

TEST_F(JobTest, LastCall_AtMostThirtySeconds) {
  nodes(1, 1000);
  join("n0");
  for (int i = 1; i < 60; ++i) {
    passes(500ms);
    EXPECT_EQ(round_of("n0"), RoundNumber());
    join("n" + std::to_string(i));
  }
  passes(500ms);
  expect_assignment("n0", 1, 0, 120);
}

TEST_F(JobTest, LastCall_AnExplicitValueCountsFromMin) {
  job_spec.last_call = 10s;
  nodes(2, 4);
  join("a");
  passes(60s);
  join("b");
  passes(9s);
  join("c");
  passes(999ms);
  expect_no_assignment("a");
  passes(1ms);
  expect_assignment("a", 1, 0, 6);
}

TEST_F(JobTest, LastCall_WaitsForTheNodesThatTheSchedulerStarts) {
  nodes(1, 8);
  job_spec.expected_nodes = 2;
  join("a");
  passes(limits::kExpectedNodesWait - 1s);
  expect_no_assignment("a");
  join("b");
  expect_assignment("b", 1, 1, 4);
}

TEST_F(JobTest, LastCall_ForAnExpectedNodeEnds) {
  nodes(1, 8);
  job_spec.expected_nodes = 2;
  join("a");
  passes(limits::kExpectedNodesWait);
  expect_assignment("a", 1, 0, 2);
}

TEST_F(JobTest, LastCall_ZeroStartsWithMin) {
  job_spec.last_call = 0s;
  nodes(1, 2);
  join("a");
  expect_assignment("a", 1, 0, 2);
}

TEST_F(JobTest, LastCall_RestartsWhenANodeLeft) {
  nodes(2, 3);
  join("a");
  join("b");
  passes(500ms);
  leaves("b");
  passes(10s);
  expect_no_assignment("a");
  join("c");
  passes(1s);
  expect_assignment("a", 1, 0, 4);
}

TEST_F(JobTest, BelowMinIsReportedEveryMinute) {
  join("a");
  forget("a");
  passes(59s);
  EXPECT_EQ(received<control::Wait>("a"), nullptr);
  passes(1s);
  ASSERT_NE(received<control::Wait>("a"), nullptr);
  EXPECT_TRUE(received<control::Wait>("a")->is_reminder);
  EXPECT_FALSE(received<control::Wait>("a")->is_spare);
  EXPECT_EQ(received<control::Wait>("a")->why, "1 of at least 2 nodes joined: a; 1 missing");
  passes(120s);
  EXPECT_EQ(count_of<control::Wait>(player("a").received), 3);
}

// ---------------------------------------------------------------- growth and spares

class Growth : public JobTest {
 protected:
  // A member dies; a and b continue without it.
  void loses(const std::string& name) {
    dies(name);
    all({"a", "b"}, &Growth::sends_stopped);
    passes(limits::kDeathGrace);
    all({"a", "b"}, &Growth::sends_started);
  }
};

TEST_F(JobTest, TheFirstWaitingNodesAreNamed) {
  nodes(8, 8);
  for (const char* name : {"f", "e", "d", "c", "b", "a"}) join(name);
  const std::string why = received<control::Wait>("a")->why;
  EXPECT_TRUE(why.starts_with("6 of at least 8 nodes joined: ")) << why;
  EXPECT_TRUE(why.ends_with(" and 2 more; 2 missing")) << why;
}

TEST_F(JobTest, Growth_TheFirstNodeIsAddedImmediately) {
  nodes(1, 4);
  a_and_b_run();
  join("c");
  expect_stop("a", StopCause::Growth);
  sends_stopped("a");
  sends_stopped("b");
  expect_assignment("c", 2, 2, 6);
  EXPECT_EQ(assignment("c").restart_count, 0);
}

TEST_F(JobTest, Growth_FurtherNodesAreBundled) {
  nodes(1, 5);
  a_and_b_run();
  join("c");
  all({"a", "b"}, &JobTest::sends_stopped);
  all({"a", "b", "c"}, &JobTest::sends_started);
  passes(10s);
  join("d");
  join("e");
  EXPECT_TRUE(received<control::Wait>("d")->is_spare)
      << "the join timeout does not count meanwhile";
  passes(19s);
  EXPECT_EQ(phase(), Phase::Running);
  passes(1s);
  EXPECT_EQ(phase(), Phase::Stopping);
  all({"a", "b", "c"}, &JobTest::sends_stopped);
  expect_assignment("e", 3, 4, 10);
}

TEST_F(Growth, AReplacementIsAddedImmediately) {
  nodes(1, 5);
  a_and_b_run();
  join("c");
  all({"a", "b"}, &JobTest::sends_stopped);
  all({"a", "b", "c"}, &JobTest::sends_started);
  loses("c");
  join("d");
  EXPECT_EQ(phase(), Phase::Stopping) << "the place of c, 0 s after the last growth";
  all({"a", "b"}, &JobTest::sends_stopped);
  expect_assignment("d", 4, 2, 6);
}

TEST_F(Growth, ANodeThatComesAndGoesIsDelayed) {
  nodes(1, 5);
  a_and_b_run();
  for (const char* name : {"c", "d"}) {
    join(name);
    all({"a", "b"}, &JobTest::sends_stopped);
    all({"a", "b", name}, &JobTest::sends_started);
    loses(name);
  }
  join("e");
  EXPECT_EQ(phase(), Phase::Running);
  passes(29s);
  EXPECT_EQ(phase(), Phase::Running);
  passes(1s);
  EXPECT_EQ(phase(), Phase::Stopping);
}

TEST_F(JobTest, Growth_NoneOnceANodeIsDone) {
  nodes(1, 3);
  a_and_b_run();
  sends_done("a");
  join("c");
  passes(120s);
  EXPECT_EQ(phase(), Phase::Running);
  sends_done("b");
  expect_decided("c", true);
}

TEST_F(JobTest, Growth_NoneForANodeThatLeftAgain) {
  nodes(1, 5);
  a_and_b_run();
  join("c");
  all({"a", "b"}, &JobTest::sends_stopped);
  join("d");
  leaves("d");
  passes(60s);
  EXPECT_EQ(phase(), Phase::Running);
}

TEST_F(JobTest, Spare_WaitsAndTakesTheNextFreePlace) {
  a_and_b_run();
  join("c");
  EXPECT_TRUE(received<control::Wait>("c")->is_spare);
  passes(100s);
  EXPECT_EQ(phase(), Phase::Running);
  dies("b");
  sends_stopped("a");
  passes(limits::kDeathGrace);
  expect_assignment("a", 2, 0, 4);
  expect_assignment("c", 2, 1, 4);
}

TEST_F(JobTest, Spare_EndsWithTheJob) {
  a_and_b_run();
  join("c");
  all({"a", "b"}, &JobTest::sends_done);
  expect_decided("c", true);
  all({"a", "b"}, &JobTest::acks);
  EXPECT_EQ(received<control::Bye>("a"), nullptr) << "c has not acknowledged";
  acks("c");
  EXPECT_NE(received<control::Bye>("c"), nullptr);
}

}  // namespace
}  // namespace cpprun::test
