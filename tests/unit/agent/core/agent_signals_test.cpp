// The agent's core: signals in each of its states. The effect of SIGTERM on running workers:
// agent_drain_test.cpp.
#include "tests/unit/agent/core/support_agent.hpp"

namespace cpprun::test {
namespace {

class AgentSignals : public AgentTest {
 public:
  AgentSignals() { max_restarts = 3; }

  // The round ends by the failure of a worker of another node.
  void fails_elsewhere() {
    runs();
    is_stopped(1);
    expect_state(State::Stopping);
    forget();
  }
  // The same, and the workers are gone.
  void is_re_formed() {
    fails_elsewhere();
    for (int64_t rank : {0, 1}) worker_ends(rank, -kTerm);
    all_quiet();
    expect_state(State::Stopped);
  }
  void runs() {
    if (!is_connected) is_in_touch();
    control::RankAssignment assignment = assignment_of(1);
    assignment.max_restarts = max_restarts;
    receives(assignment);
    ASSERT_EQ(core.state(), State::Running);
  }
  void all_end(int exit_code) {
    for (int64_t rank : {0, 1}) worker_ends(rank, exit_code);
    all_quiet();
  }
  void expect_resumable() {
    expect_finish(How::Stopped);
    EXPECT_EQ(finish->signal, kTerm);
    EXPECT_FALSE(finish->has_saved);
    EXPECT_EQ(finish->stays_until, Instant()) << "no agent waits for others";
    ASSERT_TRUE(newest_sent<control::Leave>());
    EXPECT_TRUE(newest_sent<control::Leave>()->has_saved);
    EXPECT_FALSE(disconnect->is_reset);
  }

  int64_t max_restarts;
};

TEST_F(AgentSignals, TermBeforeAnyConnection) {
  signal(kTerm);
  expect_finish(How::Stopped);
  EXPECT_EQ(finish->text, "while waiting for the coordinator; no worker was started");
}

TEST_F(AgentSignals, TermBeforeTheFirstRound) {
  is_in_touch();
  waits(false);
  signal(kTerm);
  expect_resumable();
  EXPECT_EQ(finish->text, "while waiting (a reason); no worker was started");
}

TEST_F(AgentSignals, TermDuringASnapshotFetch) {
  has_folder();
  sees({});
  is_connected = false;
  sent_messages.clear();
  is_in_touch();
  gets_assignment_to_fetch(1);
  expect_state(State::Starting);
  signal(kTerm);
  expect_resumable();
}

TEST_F(AgentSignals, TermWhileARoundReforms) {
  is_re_formed();
  signal(kTerm);
  expect_resumable();
}

TEST_F(AgentSignals, TermAfterTheWorkersSucceeded) {
  runs();
  all_end(0);
  expect_state(State::Done);
  signal(kTerm);
  expect_resumable();
}

TEST_F(AgentSignals, AnotherSignalIsTheExitCode) {
  for (int number : {kHup, kInt, kQuit}) {
    core = Core(options());
    finish.reset();
    signal(number);
    expect_finish(How::Signal);
    EXPECT_EQ(finish->signal, number);
  }
}

// The job is over; the agent does not report that it continues.
TEST_F(AgentSignals, TermAfterTheDecisionKeepsTheOutcome) {
  runs();
  all_end(0);
  has_job_result(false);
  signal(kTerm);
  expect_finish(How::Failure);
  EXPECT_EQ(finish->text, "rank 0 died");
}

TEST_F(AgentSignals, TermAfterTheLastFailureIsTheExitCode) {
  max_restarts = 0;
  is_re_formed();
  signal(kTerm);
  expect_finish(How::Signal);
  EXPECT_FALSE(newest_sent<control::Leave>()->has_saved);
}

TEST_F(AgentSignals, TermAfterAFatalFailure) {
  runs();
  start_fails(ErrorKind::BadValue);
  signal(kTerm);
  expect_finish(How::Signal);
}

TEST_F(AgentSignals, TermWhileARoundEndsStopsWorkersOnce) {
  fails_elsewhere();
  signal(kTerm);
  signal(kTerm);
  EXPECT_TRUE(stops.empty()) << "the workers have SIGTERM and their grace";
  expect_no_finish();
  all_end(-kTerm);
  expect_resumable();
}

TEST_F(AgentSignals, TermWhileTheLastRoundEnds) {
  max_restarts = 0;
  fails_elsewhere();
  signal(kTerm);
  all_end(-kTerm);
  expect_finish(How::Signal);
}

TEST_F(AgentSignals, IntAfterTermKillsAtOnce) {
  fails_elsewhere();
  signal(kTerm);
  signal(kInt);
  ASSERT_EQ(stops.size(), 1U);
  EXPECT_EQ(stops[0].signal, kKill);
  EXPECT_EQ(stops[0].grace, 0s);
}

TEST_F(AgentSignals, TheOutcomeArrivesWhileWorkersStop) {
  fails_elsewhere();
  signal(kTerm);
  has_job_result(false);
  bye();
  expect_no_finish();
  all_end(-kTerm);
  expect_finish(How::Failure);
}

TEST_F(AgentSignals, ASecondIntKillsImmediately) {
  for (int second : {kInt, kQuit}) {
    core = Core(options());
    is_connected = false;
    sent_messages.clear();
    stops.clear();
    runs();
    signal(kInt);
    signal(second);
    ASSERT_EQ(stops.size(), 2U);
    EXPECT_EQ(stops[0].signal, kInt);
    EXPECT_EQ(stops[1].signal, kKill);
  }
}

TEST_F(AgentSignals, TermAfterIntHurriesNothing) {
  runs();
  signal(kInt);
  signal(kTerm);
  EXPECT_EQ(stops.size(), 1U);
  EXPECT_EQ(newest_sent<control::Draining>(), nullptr);
  all_end(-kInt);
  expect_finish(How::Signal);
  EXPECT_EQ(finish->signal, kInt);
}

TEST_F(AgentSignals, AnAdminCommandIsNoSecondSignal) {
  runs();
  signal(kInt);
  receives(control::ShutdownRequest{false, "an operator asks"});
  EXPECT_EQ(stops.size(), 1U);
}

}  // namespace
}  // namespace cpprun::test
