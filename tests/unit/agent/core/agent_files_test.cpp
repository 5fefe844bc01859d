// The agent's core while the daemon prepares the files of a round.
#include "tests/unit/agent/core/support_agent.hpp"

namespace cpprun::test {
namespace {

class Files : public AgentTest {
 public:
  Files() { has_slow_files = true; }

  // The daemon prepares the files of round 1.
  void is_preparing() {
    is_in_touch();
    gets_assignment(1);
    expect_state(State::Starting);
    EXPECT_TRUE(started.empty());
    EXPECT_EQ(prepared.size(), 1U);
  }
};

TEST_F(Files, WorkersStartWhenTheFilesAreReady) {
  is_preparing();
  files_are_ready();
  expect_state(State::Running);
  EXPECT_EQ(started.size(), 1U);
  files_are_ready();
  EXPECT_EQ(started.size(), 1U);
}

TEST_F(Files, TheLeaseContinuesMeanwhile) {
  is_preparing();
  passes_answered(3600s);  // longer than the join timeout
  expect_no_finish();
  EXPECT_GT(times<control::Ping>(), 3000);
  files_are_ready();
  expect_state(State::Running);
}

TEST_F(Files, NoWorkerStartsAfterTheLeaseHasEnded) {
  is_preparing();
  passes(10s);
  files_are_ready();
  expect_state(State::Starting);
  EXPECT_TRUE(started.empty());
  is_granted(4s);
  expect_state(State::Running);
  EXPECT_EQ(prepared.size(), 1U) << "the files are there already";
}

TEST_F(Files, AStopMeanwhileStartsNoWorker) {
  is_preparing();
  is_stopped(1);
  expect_state(State::Stopped);
  EXPECT_EQ(times<control::Stopped>(), 1);
  files_are_ready();
  expect_state(State::Stopped);
  gets_assignment(2);
  EXPECT_EQ(prepared.size(), 2U);
  files_are_ready();
  ASSERT_EQ(started.size(), 1U);
  EXPECT_EQ(started.front().round, RoundNumber(2));
}

TEST_F(Files, AResultMeanwhileStartsNoWorker) {
  is_preparing();
  has_job_result(false);
  files_are_ready();
  EXPECT_TRUE(started.empty());
  bye();
  expect_finish(How::Failure);
}

TEST_F(Files, ASignalMeanwhileEndsTheAgent) {
  is_preparing();
  signal(kTerm);
  expect_finish(How::Stopped);
  files_are_ready();
  EXPECT_TRUE(started.empty());
  expect_finish(How::Stopped);
}

TEST_F(Files, ArePreparedAfterTheSnapshotIsHere) {
  has_folder();
  is_in_touch();
  gets_assignment_to_fetch(1);
  EXPECT_TRUE(prepared.empty());
  has_fetched();
  EXPECT_EQ(prepared.size(), 1U);
  files_are_ready();
  EXPECT_EQ(started.size(), 1U);
}

TEST_F(Files, AFetchThatEndsAfterTheAgentStartsNothing) {
  has_folder();
  is_in_touch();
  gets_assignment_to_fetch(1);
  signal(kTerm);
  expect_finish(How::Stopped);
  has_fetched();
  EXPECT_TRUE(prepared.empty() && started.empty());
  expect_finish(How::Stopped);
}

TEST_F(Files, WorkersThatEndAfterTheAgentWasRefusedChangeNothing) {
  has_slow_files = false;
  runs();
  receives(control::Refused{"a reason"});
  expect_finish(How::Error);
  worker_ends(0, 1);
  all_quiet();
  expect_finish(How::Error);
}

}  // namespace
}  // namespace cpprun::test
