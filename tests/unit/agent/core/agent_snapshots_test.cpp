// The agent's core: reports of its snapshots, and the fetch before its workers start.
#include "tests/unit/agent/core/support_agent.hpp"

namespace cpprun::test {
namespace {

using Agent = AgentTest;
using Names = std::vector<control::SnapshotName>;

TEST_F(Agent, Snapshots_AreNotScannedWithoutAFolder) {
  runs();
  is_stopped(1);
  all_quiet();
  EXPECT_EQ(scans, 0);
  EXPECT_FALSE(newest_sent<control::Register>()->has_snapshot_dir);
  EXPECT_TRUE(secrets.empty());
}

TEST_F(Agent, Snapshots_AreReportedWithTheRegistration) {
  has_folder();
  EXPECT_EQ(scans, 1);
  sees({snapshot(30), snapshot(20)});
  core.on_serving(4711);
  connects();
  const auto* facts = newest_sent<control::Register>();
  EXPECT_TRUE(facts->has_snapshot_dir);
  EXPECT_EQ(facts->snapshots, (Names{snapshot(30), snapshot(20)}));
  EXPECT_EQ(facts->snapshot_port, 4711);
}

TEST_F(Agent, Snapshots_StoppedIsSentAfterTheScan) {
  has_folder();
  sees({});
  runs();
  is_stopped(1);
  all_quiet();
  expect_state(State::Stopped);
  EXPECT_EQ(newest_sent<control::Stopped>(), nullptr);
  is_stopped(1);
  EXPECT_EQ(newest_sent<control::Stopped>(), nullptr) << "not even when it is asked again";
  sees({snapshot(40)});
  EXPECT_EQ(times<control::Stopped>(), 1);
  EXPECT_EQ(newest_sent<control::Stopped>()->snapshots, Names{snapshot(40)});
  is_stopped(1);
  EXPECT_EQ(times<control::Stopped>(), 2);
}

TEST_F(Agent, Snapshots_ADisconnectDuringTheScanLosesNothing) {
  has_folder();
  sees({});
  runs();
  is_stopped(1);
  all_quiet();
  disconnects();
  connects();
  EXPECT_EQ(newest_sent<control::Register>()->reported_phase, ReportedPhase::Running)
      << "it stops in a moment";
  sees({snapshot(40)});
  EXPECT_EQ(newest_sent<control::Stopped>()->snapshots, Names{snapshot(40)});
}

TEST_F(Agent, Snapshots_NewOnesAreReportedDuringARound) {
  has_folder();
  sees({});
  runs();
  sees({snapshot(5)});
  EXPECT_EQ(newest_sent<control::Snapshots>()->snapshots, Names{snapshot(5)});
  sees({snapshot(5)});
  EXPECT_EQ(times<control::Snapshots>(), 1);
}

TEST_F(Agent, Snapshots_UnusableOnesAreReportedOnceAndWithEachNewOne) {
  has_folder();
  sees({snapshot(20)});
  is_in_touch();
  gets_assignment_to_fetch(1);
  has_fetched();
  const auto falls_back = [this] { call([this](agent::Effects& e) { core.on_fell_back(10, e); }); };
  falls_back();
  falls_back();
  EXPECT_EQ(times<control::Snapshots>(), 1);
  EXPECT_EQ(newest_sent<control::Snapshots>()->unusable, snapshot(20).id);
  sees({snapshot(30)});
  EXPECT_EQ(newest_sent<control::Snapshots>()->snapshots, Names{snapshot(30)});
  EXPECT_EQ(newest_sent<control::Snapshots>()->unusable, snapshot(20).id);
  is_stopped(1);
  all_quiet();
  sees({snapshot(30)});
  gets_assignment(2);
  sees({snapshot(40)});
  EXPECT_EQ(newest_sent<control::Snapshots>()->unusable, "") << "that was another round's";
}

TEST_F(Agent, Snapshots_ARunFromTheBeginningFallsBackToNone) {
  has_folder();
  sees({});
  runs();
  call([this](agent::Effects& e) { core.on_fell_back(-1, e); });
  EXPECT_EQ(times<control::Snapshots>(), 0);
}

TEST_F(Agent, Snapshots_EachRoundHasItsOwnSecret) {
  has_folder();
  sees({});
  is_in_touch();
  gets_assignment_to_fetch(1);
  EXPECT_EQ(secrets, std::vector<std::string>{"secret"});
  is_stopped(1);
  sees({});
  gets_assignment(2);
  EXPECT_EQ(secrets.back(), "") << "the old one counts no more";
}

TEST_F(Agent, Fetch_NoWorkersBeforeItEnds) {
  has_folder();
  sees({});
  is_in_touch();
  gets_assignment_to_fetch(1);
  ASSERT_EQ(fetches.size(), 1U);
  EXPECT_EQ(fetches[0].resume.source_address, "10.0.0.3");
  EXPECT_EQ(fetches[0].secret, "secret");
  expect_state(State::Starting);
  passes_answered(1h);  // longer than the join timeout: a fetch has its own limits
  expect_state(State::Starting);
  expect_no_finish();
  EXPECT_GE(times<control::Ping>(), 3500) << "pings continue";
  has_fetched();
  expect_state(State::Running);
  EXPECT_EQ(started.size(), 1U);
}

TEST_F(Agent, Fetch_R6_NoWorkersWithoutAWorkerLease) {
  has_folder();
  sees({});
  is_in_touch();
  gets_assignment_to_fetch(1);
  passes(10s);
  has_fetched();
  expect_state(State::Starting);
  EXPECT_TRUE(started.empty());
  is_granted(4s);
  EXPECT_EQ(started.size(), 1U);
}

TEST_F(Agent, Fetch_AStopCancelsIt) {
  has_folder();
  sees({});
  is_in_touch();
  gets_assignment_to_fetch(1);
  is_stopped(1, StopCause::NodeLost);
  EXPECT_EQ(dropped_fetches, 1);
  sees({});
  EXPECT_NE(newest_sent<control::Stopped>(), nullptr);
  has_fetched();
  EXPECT_TRUE(started.empty()) << "the round is over";
}

TEST_F(Agent, Fetch_AFailureFailsTheStart) {
  has_folder();
  sees({});
  is_in_touch();
  gets_assignment_to_fetch(1);
  fetch_fails(false);
  EXPECT_EQ(newest_sent<control::Failed>()->why, "it could not be fetched");
  EXPECT_FALSE(newest_sent<control::Failed>()->is_fatal);
  EXPECT_EQ(newest_sent<control::Failed>()->damaged_snapshot, "");
  sees({});
  EXPECT_NE(newest_sent<control::Stopped>(), nullptr);
  expect_state(State::Stopped);
}

TEST_F(Agent, Fetch_ReportsDamage) {
  has_folder();
  sees({});
  is_in_touch();
  gets_assignment_to_fetch(1);
  fetch_fails(true);
  EXPECT_EQ(newest_sent<control::Failed>()->damaged_snapshot, snapshot(20).id);
}

TEST_F(Agent, Fetch_ASignalEndsIt) {
  has_folder();
  sees({});
  is_in_touch();
  gets_assignment_to_fetch(1);
  signal(15);
  expect_finish(How::Stopped);
}

TEST_F(Agent, Fetch_IsSkippedWithALocalSnapshot) {
  has_folder();
  sees({snapshot(20)});
  is_in_touch();
  control::RankAssignment assignment = assignment_of(1);
  assignment.resume = control::ResumePoint{snapshot(20), "", 0};
  receives(assignment);
  EXPECT_TRUE(fetches.empty());
  expect_state(State::Running);
}

TEST_F(Agent, Replicas_NoWorkersBeforeTheSearchEnds) {
  has_folder(true);
  sees({});
  is_in_touch();
  EXPECT_TRUE(newest_sent<control::Register>()->keeps_replicas);
  gets_assignment_to_fetch_replicas(1, true);
  ASSERT_EQ(sought.size(), 1U);
  EXPECT_EQ(sought[0].at, (control::PeerAddress{"10.0.0.5", 4713}));
  EXPECT_EQ(kept_of.back(), (control::PeerAddress{"10.0.0.4", 4712}));
  has_fetched();
  expect_state(State::Starting);
  passes_answered(1h);  // a search has its own limits too
  expect_state(State::Starting);
  has_sought();
  expect_state(State::Running);
  has_sought();
  EXPECT_EQ(started.size(), 1U);
}

TEST_F(Agent, Replicas_AStopCancelsTheSearch) {
  has_folder(true);
  sees({});
  is_in_touch();
  gets_assignment_to_fetch_replicas(1);
  is_stopped(1);
  EXPECT_EQ(dropped_fetches, 1);
  has_sought();
  EXPECT_TRUE(started.empty());
  sees({});
  gets_assignment(2);
  EXPECT_EQ(kept_of.back(), std::nullopt) << "no node is before it in this round";
  expect_state(State::Running);
}

TEST_F(Agent, Replicas_AFailedFetchCancelsTheSearchToo) {
  has_folder(true);
  sees({});
  is_in_touch();
  gets_assignment_to_fetch_replicas(1, true);
  fetch_fails(false);
  EXPECT_EQ(dropped_fetches, 1);
  expect_state(State::Stopped);
}

TEST_F(Agent, Replicas_AreNotSearchedWithoutTheFlag) {
  has_folder();
  sees({});
  is_in_touch();
  gets_assignment_to_fetch_replicas(1);
  EXPECT_TRUE(sought.empty());
  EXPECT_TRUE(kept_of.empty());
  expect_state(State::Running);
}

}  // namespace
}  // namespace cpprun::test
