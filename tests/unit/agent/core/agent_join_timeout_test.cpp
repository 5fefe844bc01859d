// The agent's core: the wait for a round or for a coordinator.
#include "common/limits/rendezvous.hpp"
#include "tests/unit/agent/core/support_agent.hpp"

namespace cpprun::test {
namespace {

using Agent = AgentTest;

TEST_F(Agent, JoinTimeout_WithoutAConnection) {
  passes(599s);
  expect_no_finish();
  passes(1s);
  expect_finish(How::Error);
  EXPECT_NE(finish->text.find("no connection"), std::string::npos) << finish->text;
}

TEST_F(Agent, JoinTimeout_WhileWaitingGivesTheReasonAndLeaves) {
  is_in_touch();
  waits(false);
  passes_answered(600s);
  expect_finish(How::Error);
  EXPECT_NE(finish->text.find("a reason"), std::string::npos) << finish->text;
  EXPECT_EQ(finish->text.find("hint"), std::string::npos) << finish->text;
  EXPECT_NE(newest_sent<control::Leave>(), nullptr);
}

TEST_F(Agent, JoinTimeout_GivesAHintIfNodesAreMissing) {
  is_in_touch();
  control::Wait wait{"a reason"};
  wait.missing_nodes = 2;
  receives(wait);
  passes_answered(600s);
  expect_finish(How::Error);
  EXPECT_NE(finish->text.find("\nhint: start"), std::string::npos) << finish->text;
}

TEST_F(Agent, JoinTimeout_BeginsAfterTheDelayOfTheNextRound) {
  runs();
  is_stopped(1);
  all_quiet();
  control::Wait wait{"300 s before the next round", false, false};
  wait.delay = 300s;
  receives(wait);
  passes_answered(899s);
  expect_no_finish();
  passes_answered(1s);
  expect_finish(How::Error);
}

TEST_F(Agent, JoinTimeout_NoDelayIsLongerThanTheLimit) {
  is_in_touch();
  control::Wait wait{"a reason", false, false};
  wait.delay = std::chrono::hours(24);
  receives(wait);
  passes_answered(600s + limits::kRestartBackoffMax);
  expect_finish(How::Error);
}

TEST_F(Agent, JoinTimeout_DoesNotRestartWithEachBrokenConnection) {
  for (int i = 0; i < 299; ++i) {  // the peer accepts and disconnects
    connects();
    passes(2s);
    disconnects();
  }
  expect_no_finish();
  passes(2s);
  expect_finish(How::Error);
}

TEST_F(Agent, JoinTimeout_InStarting) {
  connects();
  is_welcomed();
  gets_assignment(1);
  passes(600s);
  expect_finish(How::Error);
}

TEST_F(Agent, JoinTimeout_SparesARoundThatStartedLate) {
  connects();
  is_welcomed();
  gets_assignment(1);
  disconnects();
  connects();
  is_granted(4s);
  expect_state(State::Running);
  passes_answered(2000s);
  expect_no_finish();
}

TEST_F(Agent, JoinTimeout_InStoppedCountsFromTheStop) {
  runs();
  passes_answered(1000s);
  is_stopped(1);
  all_quiet();
  passes_answered(599s);
  expect_no_finish();
  passes_answered(1s);
  expect_finish(How::Error);
}

TEST_F(Agent, JoinTimeout_NotInDoneWhileConnected) {
  runs();
  all_quiet();
  passes_answered(1500s);
  disconnects();
  passes(500s);
  connects();
  is_welcomed();
  is_granted(4s);
  passes_answered(1500s);
  expect_no_finish();
}

TEST_F(Agent, JoinTimeout_InDoneWithoutConnectionTheOutcomeIsUnknown) {
  runs();
  all_quiet();
  disconnects();
  passes(600s);
  expect_finish(How::Error);
  EXPECT_NE(finish->text.find("outcome is unknown"), std::string::npos) << finish->text;
}

TEST_F(Agent, JoinTimeout_DoneWithoutConnection) {
  runs();
  disconnects();
  all_quiet();
  passes(600s);
  expect_finish(How::Error);
}

TEST_F(Agent, JoinTimeout_DoesNotApplyToASpare) {
  is_in_touch();
  waits(true);
  passes_answered(1500s);
  expect_no_finish();
  waits(false);  // the round without a place for it is over
  passes_answered(599s);
  expect_no_finish();
  passes_answered(1s);
  expect_finish(How::Error);
}

TEST_F(Agent, JoinTimeout_ForADisconnectedSpareCountsFromTheDisconnect) {
  is_in_touch();
  waits(true);
  passes_answered(1500s);
  disconnects();
  passes(599s);
  expect_no_finish();
  passes(1s);
  expect_finish(How::Error);
}

TEST_F(Agent, PrintsALostNodeOnceAndGrowthNever) {
  int64_t round = 0;
  for (const auto& [cause, lines] :
       {std::pair{StopCause::NodeLost, 1}, {StopCause::NodeLeft, 1}, {StopCause::Growth, 0}}) {
    round == 0 ? runs(++round) : gets_assignment(++round);
    const int before = warnings;
    is_stopped(round, cause);
    is_stopped(round, cause);
    EXPECT_EQ(warnings, before + lines) << round;
    all_quiet();
  }
}

TEST_F(Agent, PrintsWorkThatIsLostWithANode) {
  runs();
  all_quiet();
  expect_state(State::Done);
  const int before = warnings;
  is_stopped(1, StopCause::NodeLost);
  EXPECT_EQ(warnings, before + 1);
}

}  // namespace
}  // namespace cpprun::test
