// The agent's core: leaving on an admin command, fault permits kept for a later coordinator, and
// ends of a run that no coordinator decides.
#include "common/exit_code.hpp"
#include "common/limits/faults.hpp"
#include "tests/unit/agent/core/support_agent.hpp"

namespace cpprun::test {
namespace {

using Agent = AgentTest;

TEST_F(Agent, Shutdown_WithSavingIsLikeSigterm) {
  runs();
  receives(control::ShutdownRequest{true, "an operator on node1 asked the job to stop"});
  expect_state(State::Draining);
  EXPECT_NE(newest_sent<control::Draining>(), nullptr);
  ASSERT_EQ(stops.size(), 1U);
  EXPECT_EQ(stops[0].signal, kTerm);
  EXPECT_TRUE(stops[0].lets_save);
  worker_ends(0, kStoppedResumable);
  worker_ends(1, kStoppedResumable);
  all_quiet();
  expect_finish(How::Stopped);
}

TEST_F(Agent, Shutdown_WithoutSavingIsLikeSigint) {
  runs();
  receives(control::ShutdownRequest{false, "an operator on node1 asked the job to stop"});
  expect_state(State::Leaving);
  ASSERT_EQ(stops.size(), 1U);
  EXPECT_EQ(stops[0].signal, kInt);
  EXPECT_FALSE(stops[0].lets_save);
}

TEST_F(Agent, Shutdown_RepeatedHurriesNothingButCtrlCDoes) {
  runs();
  receives(control::ShutdownRequest{true, "an operator asks"});
  receives(control::ShutdownRequest{true, "an operator asks again"});
  receives(control::ShutdownRequest{false, "and again"});
  EXPECT_EQ(stops.size(), 1U);
  EXPECT_EQ(times<control::Draining>(), 1);
  signal(kTerm);
  EXPECT_EQ(stops.size(), 1U);
  signal(kInt);
  ASSERT_EQ(stops.size(), 2U);
  EXPECT_EQ(stops[1].signal, kKill);
}

TEST_F(Agent, Shutdown_OfASpareEndsImmediately) {
  is_in_touch();
  waits(true);
  receives(control::ShutdownRequest{true, "an operator asks"});
  EXPECT_NE(newest_sent<control::Leave>(), nullptr);
  expect_finish(How::Stopped);
}

TEST_F(Agent, Shutdown_AfterTheOutcomeChangesNothing) {
  runs();
  all_quiet();
  has_job_result(true);
  receives(control::ShutdownRequest{true, "an operator asks too late"});
  expect_no_finish();
  bye();
  expect_finish(How::Success);
}

TEST_F(Agent, KeepsFaultPermitsForTheNextCoordinator) {
  is_in_touch();
  receives(control::FaultPermit{2, 3, true});
  receives(control::FaultPermit{2, 1, true});  // received late
  receives(control::FaultPermit{0, 1, true});
  disconnects();
  connects();
  EXPECT_EQ(newest_sent<control::Register>()->fault_counts, (std::vector<int64_t>{1, 0, 3}));
}

TEST_F(Agent, IgnoresRefusedAndUnknownFaultPermits) {
  is_in_touch();
  receives(control::FaultPermit{0, 1, false});
  receives(control::FaultPermit{-1, 1, true});
  receives(control::FaultPermit{static_cast<int64_t>(limits::kFaultsPerPlan), 1, true});
  disconnects();
  connects();
  EXPECT_TRUE(newest_sent<control::Register>()->fault_counts.empty());
}

TEST_F(Agent, AnUnreachableCoordinatorEndsTheRunWithAMessage) {
  const Error error{ErrorKind::Network, "no host is called 'haed'"};
  call([&](agent::Effects& e) { core.on_unreachable(now, error, e); });
  expect_finish(How::Error);
  EXPECT_EQ(finish->text, "no host is called 'haed'");
  call([&](agent::Effects& e) { core.on_unreachable(now, error, e); });  // reported once
}

TEST_F(Agent, R11_AHangSeenAfterTheWorkerLeaseIsNoFailure) {
  runs();
  now = now + 60s;  // frozen, as the workers were
  WorkerExit hung;
  hung.hang = "no heartbeat for 60.0 s";
  call([&](agent::Effects& e) { core.on_hang(now, hung, e); });
  EXPECT_EQ(newest_sent<control::Failed>(), nullptr);
  EXPECT_TRUE(failures.empty());
  ASSERT_EQ(stops.size(), 1U);
  EXPECT_EQ(stops[0].grace, 0s);
}

TEST_F(Agent, AFailedStartAfterASignalEndsByTheSignal) {
  runs();
  signal(kInt);
  start_fails();
  EXPECT_EQ(newest_sent<control::Failed>(), nullptr) << "nothing was to be started any more";
  expect_finish(How::Signal);
}

}  // namespace
}  // namespace cpprun::test
