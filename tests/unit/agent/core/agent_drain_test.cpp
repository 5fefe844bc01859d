// The agent's core: stopping on request, on this node and on others.
#include "common/exit_code.hpp"
#include "common/limits/agent.hpp"
#include "tests/unit/agent/core/support_agent.hpp"

namespace cpprun::test {
namespace {

using Agent = AgentTest;

TEST_F(Agent, Drain_SigtermLetsTheWorkersSaveAndEndsResumable) {
  runs();
  signal(kTerm);
  expect_state(State::Draining);
  EXPECT_EQ(newest_sent<control::Draining>()->round, RoundNumber(1));
  ASSERT_EQ(stops.size(), 1U);
  EXPECT_TRUE(stops[0].lets_save);
  EXPECT_EQ(stops[0].signal, kTerm);
  EXPECT_EQ(stops[0].grace, 30s);
  worker_ends(0, kStoppedResumable);
  worker_ends(1, kStoppedResumable);
  expect_no_finish();
  all_quiet();
  EXPECT_EQ(newest_sent<control::Failed>(), nullptr) << "no failure";
  EXPECT_TRUE(newest_sent<control::Leave>()->has_saved);
  EXPECT_FALSE(disconnect->is_reset) << "the leave message must arrive";
  expect_finish(How::Stopped);
  EXPECT_TRUE(finish->ends.empty()) << "not in the summary";
  EXPECT_TRUE(failures.empty());
}

TEST_F(Agent, Drain_TheNextCoordinatorLearnsOfTheRequest) {
  for (const StopCause cause : {StopCause::Drain, StopCause::Operator, StopCause::Growth}) {
    core = Core(options());
    call([&](agent::Effects& e) { core.start(now, e); });
    is_connected = false;
    runs();
    is_stopped(1, cause);
    disconnects();
    connects();
    EXPECT_EQ(newest_sent<control::Register>()->is_stop_requested, cause != StopCause::Growth);
  }
}

TEST_F(Agent, Drain_WithoutASaveTheSignalIsTheExitCode) {
  runs();
  signal(kTerm);
  worker_ends(0, -kTerm);
  worker_ends(1, kStoppedResumable);
  all_quiet();
  EXPECT_FALSE(newest_sent<control::Leave>()->has_saved);
  expect_finish(How::Signal);
  EXPECT_EQ(finish->signal, kTerm);
}

TEST_F(Agent, Drain_FinishedWorkersNeedNotSave) {
  runs();
  signal(kTerm);
  worker_ends(0, 0);
  worker_ends(1, kStoppedResumable);
  all_quiet();
  expect_finish(How::Stopped);
}

TEST_F(Agent, Drain_AllDoneIsNotResumable) {
  runs();
  signal(kTerm);
  worker_ends(0, 0);
  worker_ends(1, 0);
  all_quiet();
  expect_finish(How::Signal);
}

TEST_F(Agent, Drain_AFailedSaveEndsTheOtherSaves) {
  runs();
  signal(kTerm);
  worker_ends(0, kStoppedResumable);
  EXPECT_TRUE(saves_ended.empty());
  worker_ends(1, 1);
  EXPECT_EQ(saves_ended, std::vector<int>{kTerm});
  EXPECT_EQ(newest_sent<control::Failed>(), nullptr);
}

TEST_F(Agent, Drain_CtrlCKillsSavingWorkers) {
  for (int second : {kInt, kQuit}) {
    has_folder();
    sees({});
    is_connected = false;
    sent_messages.clear();
    stops.clear();
    finish.reset();
    runs();
    signal(kTerm);
    signal(second);
    ASSERT_EQ(stops.size(), 2U);
    EXPECT_EQ(stops[1].signal, kKill);
    worker_ends(0, -kKill);
    all_quiet();
    sees({});
    expect_finish(How::Signal);
    EXPECT_EQ(finish->signal, kTerm);
  }
}

// Schedulers send SIGTERM twice within milliseconds.
TEST_F(Agent, Drain_ARepeatedRequestChangesNothing) {
  runs();
  signal(kTerm);
  for (int again : {kTerm, kHup, kTerm}) signal(again);
  EXPECT_EQ(stops.size(), 1U) << "the workers continue to save";
  EXPECT_EQ(times<control::Draining>(), 1);
  expect_state(State::Draining);
  worker_ends(0, kStoppedResumable);
  worker_ends(1, kStoppedResumable);
  all_quiet();
  expect_finish(How::Stopped);
  EXPECT_TRUE(finish->has_saved);
  EXPECT_EQ(finish->stays_until, now + 30s) << "its grace began with the first one";
}

TEST_F(Agent, Drain_OtherSignalsAllowNoSave) {
  runs();
  signal(2);
  expect_state(State::Leaving);
  EXPECT_FALSE(stops[0].lets_save);
  EXPECT_EQ(newest_sent<control::Draining>(), nullptr);
  worker_ends(0, -2);
  all_quiet();
  expect_finish(How::Signal);
}

TEST_F(Agent, Drain_ReportsTheSnapshotWithTheWork) {
  has_folder();
  sees({snapshot(10)});
  runs();
  signal(kTerm);
  worker_ends(0, kStoppedResumable);
  all_quiet();
  expect_state(State::Saved);
  expect_no_finish();
  sees({snapshot(12), snapshot(10)});
  expect_finish(How::Stopped);
  EXPECT_EQ(finish->snapshot->step, 12);
}

TEST_F(Agent, Drain_CtrlCEndsTheLastScan) {
  has_folder();
  sees({});
  runs();
  signal(kTerm);
  worker_ends(0, kStoppedResumable);
  all_quiet();
  signal(kTerm);
  expect_no_finish();
  signal(kInt);
  expect_finish(How::Stopped);
}

TEST_F(Agent, Drain_DoesNotWaitForAHangingFolder) {
  has_folder();
  sees({snapshot(10)});
  runs();
  signal(kTerm);
  worker_ends(0, kStoppedResumable);
  all_quiet();
  passes(limits::kFinalScanTimeout - 1ms);
  expect_no_finish();
  passes(1ms);
  expect_finish(How::Stopped);
  EXPECT_EQ(finish->snapshot->step, 10);
}

// ---------------------------------------------------------------- nothing to save

TEST_F(Agent, Drain_WorkersBeforeTheirFirstStepLoseNothing) {
  runs();
  signal(kTerm);
  for (int64_t rank : {0, 1}) makes_no_step(rank), worker_ends(rank, -kTerm);
  all_quiet();
  EXPECT_TRUE(newest_sent<control::Leave>()->has_saved);
  expect_finish(How::Stopped);
  EXPECT_FALSE(finish->has_saved) << "no worker reports that it has saved";
}

TEST_F(Agent, Drain_AWorkerAfterItsFirstStepLosesWork) {
  runs();
  signal(kTerm);
  makes_no_step(0);
  worker_ends(0, -kTerm);
  worker_ends(1, -kTerm);
  all_quiet();
  expect_finish(How::Signal);
}

TEST_F(Agent, Drain_StepCountsBelongToTheirRound) {
  runs();
  is_stopped(1, StopCause::Drain);
  for (int64_t rank : {0, 1}) makes_no_step(rank), worker_ends(rank, -kTerm);
  all_quiet();
  EXPECT_TRUE(newest_sent<control::Stopped>()->has_saved);
  gets_assignment(2);
  signal(kTerm);
  for (int64_t rank : {0, 1}) worker_ends(rank, -kTerm);
  all_quiet();
  expect_finish(How::Signal);
}

TEST_F(Agent, Drain_OtherSignalsAreTheExitCodeEvenIfWorkIsLost) {
  runs();
  signal(kInt);
  for (int64_t rank : {0, 1}) makes_no_step(rank), worker_ends(rank, -kInt);
  all_quiet();
  expect_finish(How::Signal);
}

TEST_F(Agent, Drain_R6_TheWorkerLeaseStillApplies) {
  runs();
  signal(kTerm);
  passes(4s);
  ASSERT_EQ(stops.size(), 2U);
  EXPECT_EQ(stops[1].signal, kKill);
}

TEST_F(Agent, Drain_IsRepeatedOverANewConnection) {
  runs();
  signal(kTerm);
  disconnects();
  connects();
  EXPECT_TRUE(newest_sent<control::Register>()->is_draining);
  EXPECT_EQ(newest_sent<control::Register>()->reported_phase, ReportedPhase::Running);
}

// ---------------------------------------------------------------- at another node

TEST_F(Agent, Drain_OfAnotherNodeLetsTheWorkersSave) {
  runs();
  is_stopped(1, StopCause::Drain);
  expect_state(State::Stopping);
  EXPECT_TRUE(stops[0].lets_save);
  worker_ends(0, kStoppedResumable);
  worker_ends(1, kStoppedResumable);
  all_quiet();
  EXPECT_TRUE(newest_sent<control::Stopped>()->has_saved);
  EXPECT_EQ(newest_sent<control::Failed>(), nullptr);
  gets_assignment(2);
  expect_state(State::Running);
}

TEST_F(Agent, Drain_ReportsWorkersThatDidNotSave) {
  runs();
  is_stopped(1, StopCause::Drain);
  worker_ends(0, -kTerm);
  all_quiet();
  EXPECT_FALSE(newest_sent<control::Stopped>()->has_saved);
  EXPECT_EQ(newest_sent<control::Failed>(), nullptr);
}

TEST_F(Agent, Drain_AnyOtherStopAllowsNoSave) {
  runs();
  is_stopped(1, StopCause::Growth);
  EXPECT_FALSE(stops[0].lets_save);
  worker_ends(0, kStoppedResumable);
  all_quiet();
  EXPECT_FALSE(newest_sent<control::Stopped>()->has_saved);
}

TEST_F(Agent, Drain_AWorkerExitBeforeTheCoordinatorsStopIsNoFailure) {
  runs();
  worker_ends(0, kStoppedResumable);
  EXPECT_TRUE(stops[0].lets_save) << "the others are saving too";
  EXPECT_NE(newest_sent<control::Failed>(), nullptr);
  EXPECT_TRUE(failures.empty()) << "perhaps somebody drains";
  is_stopped(1, StopCause::Drain);
  worker_ends(1, kStoppedResumable);
  all_quiet();
  EXPECT_TRUE(failures.empty());
  EXPECT_TRUE(newest_sent<control::Stopped>()->has_saved);
}

TEST_F(Agent, Drain_TheResumableCodeWithoutARequestIsAFailure) {
  runs();
  worker_ends(0, kStoppedResumable);
  is_stopped(1, StopCause::Failure);
  ASSERT_EQ(failures.size(), 1U);
  EXPECT_EQ(failures[0].end.exit_code, kStoppedResumable);
  EXPECT_EQ(saves_ended, std::vector<int>{kTerm}) << "no worker saves any more";
}

TEST_F(Agent, Drain_TheJobEndsResumable) {
  runs();
  is_stopped(1, StopCause::Drain);
  worker_ends(0, kStoppedResumable);
  all_quiet();
  control::JobResult decided{false, "node7 was asked to stop"};
  decided.is_resumable = true;
  receives(decided);
  bye();
  expect_finish(How::Stopped);
  EXPECT_EQ(finish->text, "node7 was asked to stop");
}

TEST_F(Agent, Drain_AsksAllNodesTogether) {
  runs();
  is_stopped(1, StopCause::Drain);  // another node was quicker
  signal(kTerm);
  expect_state(State::Draining);
  EXPECT_EQ(stops.size(), 1U) << "its workers continue to save";
  EXPECT_NE(newest_sent<control::Draining>(), nullptr);
  worker_ends(0, kStoppedResumable);
  all_quiet();
  expect_finish(How::Stopped);
}

TEST_F(Agent, Drain_IsAcceptedAfterEverythingIsSaved) {
  runs();
  is_stopped(1, StopCause::Drain);
  worker_ends(0, kStoppedResumable);
  all_quiet();
  expect_state(State::Stopped);
  signal(kTerm);
  expect_finish(How::Stopped);
  EXPECT_NE(newest_sent<control::Leave>(), nullptr);
}

TEST_F(Agent, Drain_TheNextRoundStartsWithoutTheRequest) {
  runs();
  is_stopped(1, StopCause::Drain);
  worker_ends(0, kStoppedResumable);
  all_quiet();
  gets_assignment(2);
  forget();
  worker_ends(0, 1);
  EXPECT_NE(newest_sent<control::Failed>(), nullptr);
  EXPECT_FALSE(stops[0].lets_save);
}

}  // namespace
}  // namespace cpprun::test
