// The agent ends when workers or their orphans survive SIGKILL.
#include "tests/unit/agent/core/support_agent.hpp"

namespace cpprun::test {
namespace {

using Agent = AgentTest;

TEST_F(Agent, AWorkerThatSurvivesSigkillMakesItsNodeUnusable) {
  runs();
  worker_ends(0, 1);
  is_stopped(1);
  is_stuck();
  const auto* leave = newest_sent<control::Leave>();
  ASSERT_NE(leave, nullptr);
  EXPECT_TRUE(leave->is_unusable);
  EXPECT_FALSE(leave->has_saved);
  EXPECT_EQ(leave->why, "it is unusable: SIGKILL did not end rank 1 (pid 4711)");
  EXPECT_EQ(newest_sent<control::Stopped>(), nullptr);
  EXPECT_FALSE(disconnect->is_reset);
  expect_finish(How::Unusable);
  EXPECT_EQ(finish->text, "rank 1 (pid 4711)");
  ASSERT_EQ(finish->ends.size(), 1U) << "what failed here is not forgotten";
}

TEST_F(Agent, ASignalDoesNotHideAnUnusableNode) {
  runs();
  signal(15);
  is_stuck();
  expect_finish(How::Unusable);
}

TEST_F(Agent, AnOrphanThatSurvivesSigkillMakesItsNodeUnusable) {
  runs();
  for (int64_t rank : {0, 1}) worker_ends(rank, 0);
  is_stuck();
  EXPECT_EQ(newest_sent<control::Done>(), nullptr);
  expect_finish(How::Unusable);
}

TEST_F(Agent, SavedWorkStaysSavedOnAnUnusableNode) {
  runs();
  signal(15);
  for (int64_t rank : {0, 1}) worker_ends(rank, 75);
  is_stuck();
  EXPECT_TRUE(newest_sent<control::Leave>()->has_saved);
  expect_finish(How::Unusable);
}

TEST_F(Agent, TheOutcomeDoesNotHideAnUnusableNode) {
  runs();
  has_job_result(false);
  bye();
  is_stuck();
  expect_finish(How::Unusable);
  forget();
  is_stuck();
  EXPECT_TRUE(sent_messages.empty()) << "it has ended";
}

TEST_F(Agent, AFailedStartMayLeaveAWorkerThatSurvivesSigkill) {
  runs();
  start_fails(ErrorKind::System);
  expect_state(State::Stopped);
  is_stuck();
  expect_finish(How::Unusable);
}

}  // namespace
}  // namespace cpprun::test
