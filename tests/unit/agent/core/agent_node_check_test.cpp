// The agent's core: when it runs --node-check, what it reports, and what a failure means.
#include "common/limits/rendezvous.hpp"
#include "tests/unit/agent/core/support_agent.hpp"

namespace cpprun::test {
namespace {

using Agent = AgentTest;
using control::CheckState;

TEST_F(Agent, NodeCheck_RunsBeforeTheNodeIsPlaced) {
  has_node_check(2);
  EXPECT_EQ(checks, 1);
  is_in_touch();
  EXPECT_EQ(newest_sent<control::Register>()->node_check.state, CheckState::Pending);
  is_checked("");
  ASSERT_TRUE(newest_sent<control::NodeCheck>());
  EXPECT_EQ(newest_sent<control::NodeCheck>()->state, CheckState::Passed);
  EXPECT_EQ(warnings, 0);
}

TEST_F(Agent, NodeCheck_ARegistrationBringsTheResult) {
  has_node_check(2);
  is_checked("GPU 3 is lost");
  is_in_touch();
  EXPECT_EQ(newest_sent<control::NodeCheck>(), nullptr);
  EXPECT_EQ(newest_sent<control::Register>()->node_check.state, CheckState::Failed);
  EXPECT_EQ(newest_sent<control::Register>()->node_check.why, "GPU 3 is lost");
  EXPECT_EQ(warnings, 1) << "it prints the reason on its console";
}

TEST_F(Agent, NodeCheck_AResultDuringTheRegistrationFollowsIt) {
  has_node_check(2);
  connects();
  is_checked("");
  ASSERT_TRUE(newest_sent<control::NodeCheck>()) << "the coordinator would wait for it for ever";
  EXPECT_EQ(newest_sent<control::NodeCheck>()->state, CheckState::Passed);
}

TEST_F(Agent, NodeCheck_StoppedWaitsForTheCheckAfterARound) {
  has_node_check(2);
  is_checked("");
  runs();
  worker_ends(0, 1);
  worker_ends(1, -kTerm);
  all_quiet();
  EXPECT_EQ(checks, 2);
  EXPECT_EQ(newest_sent<control::Stopped>(), nullptr)
      << "the node is not ready before it is checked";
  is_checked("GPU 3 is lost");
  ASSERT_TRUE(newest_sent<control::Stopped>());
  EXPECT_EQ(newest_sent<control::Stopped>()->node_check.state, CheckState::Failed);
}

TEST_F(Agent, NodeCheck_AFailureIsRepeatedUntilItPasses) {
  has_node_check(2);
  is_in_touch();
  is_checked("GPU 3 is lost");
  waits(true);
  passes_answered(limits::kNodeCheckRetryInterval);
  EXPECT_EQ(checks, 2);
  is_checked("GPU 3 is lost");
  EXPECT_EQ(warnings, 2) << "the same finding is logged once; the other is that the node waits";
  passes_answered(limits::kNodeCheckRetryInterval);
  is_checked("");
  EXPECT_EQ(newest_sent<control::NodeCheck>()->state, CheckState::Passed);
}

TEST_F(Agent, NodeCheck_ASpareIsCheckedNowAndThen) {
  has_node_check(2);
  is_in_touch();
  is_checked("");
  waits(true);
  passes_answered(limits::kSpareCheckInterval);
  EXPECT_EQ(checks, 2);
  passes_answered(limits::kSpareCheckInterval);
  EXPECT_EQ(checks, 2) << "one at a time";
}

TEST_F(Agent, NodeCheck_AJobOfOneNodeEndsWithAnError) {
  has_node_check(1);
  is_in_touch();
  is_checked("GPU 3 is lost");
  expect_finish(How::Error);
  EXPECT_EQ(finish->text, "the node check (--node-check) failed: GPU 3 is lost");
}

TEST_F(Agent, NodeCheck_WithoutTheOptionNothingRuns) {
  runs();
  worker_ends(0, 1);
  worker_ends(1, -kTerm);
  all_quiet();
  EXPECT_EQ(checks, 0);
  EXPECT_EQ(newest_sent<control::Stopped>()->node_check.state, CheckState::Passed);
}

TEST_F(Agent, HostRecords_TheNewestIsReportedToTheNextCoordinator) {
  runs();
  control::HostRecord record;
  record.host = "n1";
  receives(control::HostRecords{4, {record}});
  receives(control::HostRecords{3, {}});
  disconnects();
  connects();
  ASSERT_TRUE(newest_sent<control::Register>()->host_records);
  EXPECT_EQ(newest_sent<control::Register>()->host_records->revision, 4);
}

TEST_F(Agent, HostRecords_ThoseOfEarlierJobsAreForgottenInTheFirstRound) {
  agent::AgentOptions with = options();
  with.host_records.revision = 9;
  core = Core(with);
  call([&](agent::Effects& e) { core.start(now, e); });
  is_in_touch();
  EXPECT_TRUE(newest_sent<control::Register>()->host_records);
  gets_assignment(1);
  disconnects();
  connects();
  EXPECT_FALSE(newest_sent<control::Register>()->host_records);
}

}  // namespace
}  // namespace cpprun::test
