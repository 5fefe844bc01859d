// The agent's core: the transitions of the state diagram in agent.hpp.
#include "common/limits/agent.hpp"
#include "tests/unit/agent/core/support_agent.hpp"

namespace cpprun::test {
namespace {

using Agent = AgentTest;

TEST_F(Agent, SendsHelloThenRegistersWithItsPort) {
  connects();
  ASSERT_EQ(sent_messages.size(), 2U);
  EXPECT_EQ(std::get<control::Hello>(sent_messages[0]).connection, 1);
  const auto& facts = std::get<control::Register>(sent_messages[1]);
  EXPECT_EQ(facts.reported_phase, ReportedPhase::Idle);
  EXPECT_EQ(facts.reserved_port, 40001);
  EXPECT_EQ(facts.addresses, std::vector<std::string>{"10.0.0.2"});
}

TEST_F(Agent, RunsAndSucceeds) {
  runs();
  EXPECT_EQ(started.size(), 1U);
  EXPECT_EQ(newest_sent<control::Started>()->round, RoundNumber(1));
  worker_ends(0, 0);
  worker_ends(1, 0);
  all_quiet();
  expect_state(State::Done);
  EXPECT_EQ(newest_sent<control::Done>()->round, RoundNumber(1));
  EXPECT_TRUE(worker_leases.back().is_never());
  has_job_result(true);
  EXPECT_TRUE(newest_sent<control::Ack>()->is_success);
  expect_no_finish();
  bye();
  expect_finish(How::Success);
  EXPECT_FALSE(disconnect->is_reset) << "the leave message must arrive";
}

TEST_F(Agent, AFailureStopsTheSiblingsImmediately) {
  runs();
  worker_ends(1, 3);
  ASSERT_EQ(stops.size(), 1U);
  EXPECT_EQ(stops[0].signal, 15);
  EXPECT_EQ(stops[0].grace, 30s);
  ASSERT_EQ(failures.size(), 1U);
  EXPECT_EQ(newest_sent<control::Failed>()->end.exit_code, 3);
  worker_ends(0, -15);
  EXPECT_EQ(times<control::Failed>(), 1);
  all_quiet();
  expect_state(State::Stopped);
  EXPECT_EQ(newest_sent<control::Stopped>()->round, RoundNumber(1));
  EXPECT_EQ(newest_sent<control::Stopped>()->reserved_port, 40002);
}

TEST_F(Agent, StopsTheSiblingsBeforeTheLastLinesOfAFailedWorkerArrive) {
  runs();
  worker_fails(1, 3);
  ASSERT_EQ(stops.size(), 1U);
  EXPECT_EQ(stops[0].signal, 15);
  EXPECT_EQ(newest_sent<control::Failed>(), nullptr) << "the report needs the last lines";
  worker_fails(0, 4);
  worker_ends(1, 3);
  EXPECT_EQ(newest_sent<control::Failed>()->end.exit_code, 3);
  worker_ends(0, 4);
  EXPECT_EQ(times<control::Failed>(), 1);
  EXPECT_EQ(stops.size(), 1U);
  EXPECT_EQ(failures.size(), 1U);
}

TEST_F(Agent, AStopByTheCoordinatorDoesNotHideAFailureWhoseLastLinesAreMissing) {
  runs();
  worker_fails(1, 3);
  is_stopped(1, StopCause::NodeLost);
  worker_ends(1, 3);
  EXPECT_EQ(newest_sent<control::Failed>()->end.exit_code, 3);
  EXPECT_EQ(times<control::Failed>(), 1);
  all_quiet();
  is_stopped(1);
  gets_assignment(2);
  worker_ends(0, 0);
  EXPECT_EQ(times<control::Failed>(), 1);
}

TEST_F(Agent, AFailureWithinADrainIsNotReported) {
  runs();
  worker_fails(1, 3);
  is_stopped(1, StopCause::Drain);
  worker_ends(1, 3);
  EXPECT_EQ(newest_sent<control::Failed>(), nullptr);
}

TEST_F(Agent, TheLargestReportFitsIntoAFrame) {
  WorkerExit end;
  end.exit_code = 1;
  end.error = ErrorReport{};
  end.error->path.assign(4096, 'p');
  end.error->message.assign(1 << 20, 'm');
  end.error->traceback.assign(1 << 20, 't');
  end.last_lines.assign(limits::kLastLines - 1, std::string(limits::kLineBytes, 'l'));
  end.last_lines.push_back("the newest");
  runs();
  call([&](agent::Effects& e) { core.on_worker_exit(now, end, e); });
  ASSERT_NE(newest_sent<control::Failed>(), nullptr);
  EXPECT_EQ(newest_sent<control::Failed>()->end.last_lines, std::vector<std::string>{"the newest"});
  EXPECT_EQ(newest_sent<control::Failed>()->end.error->message.size(), limits::kSummaryTextBytes);
  EXPECT_EQ(failures[0].end.last_lines.size(), limits::kLastLines) << "the console sees all";
}

TEST_F(Agent, StartsTheNextRoundAfterItStopped) {
  runs(1);
  is_stopped(1);
  all_quiet();
  gets_assignment(2, 1);
  expect_state(State::Running);
  EXPECT_EQ(started.back().round, RoundNumber(2));
}

TEST_F(Agent, AStopByTheCoordinatorIsNoFailure) {
  runs();
  is_stopped(1, StopCause::Growth);
  worker_ends(0, -15);
  all_quiet();
  EXPECT_EQ(newest_sent<control::Failed>(), nullptr);
  EXPECT_EQ(newest_sent<control::Stopped>()->round, RoundNumber(1));
}

TEST_F(Agent, AStopRevertsDone) {
  runs();
  all_quiet();
  expect_state(State::Done);
  is_stopped(1);
  expect_state(State::Stopped);
  EXPECT_EQ(newest_sent<control::Stopped>()->round, RoundNumber(1));
  gets_assignment(2);
  expect_state(State::Running);
}

TEST_F(Agent, StopBeforeTheFirstWorkerLease) {
  connects();
  is_welcomed();
  gets_assignment(1);
  expect_state(State::Starting);
  is_stopped(1);
  expect_state(State::Stopped);
  EXPECT_TRUE(started.empty());
  is_granted(4s);
  EXPECT_TRUE(started.empty()) << "the round is over";
}

TEST_F(Agent, StopWhileStoppingOrStopped) {
  runs();
  worker_ends(0, 1);
  is_stopped(1);
  EXPECT_EQ(stops.size(), 1U);
  all_quiet();
  is_stopped(1);
  EXPECT_EQ(times<control::Stopped>(), 2) << "the agent sends Stopped again";
}

TEST_F(Agent, R1_IgnoresAnOldAssignment) {
  runs(5);
  is_stopped(5);
  all_quiet();
  gets_assignment(5);
  gets_assignment(4);
  expect_state(State::Stopped);
  EXPECT_EQ(started.size(), 1U);
}

TEST_F(Agent, R1_IgnoresAnAssignmentWhileWorkersLive) {
  runs(1);
  gets_assignment(2);
  worker_ends(0, 1);
  gets_assignment(2);
  EXPECT_EQ(started.size(), 1U);
  all_quiet();
  gets_assignment(2);
  EXPECT_EQ(started.size(), 2U);
}

TEST_F(Agent, R10_IgnoresAnAssignmentOfAnOlderTerm) {
  term = 9;
  is_in_touch();
  term = 8;
  gets_assignment(1);
  expect_state(State::Joining);
}

TEST_F(Agent, AStopOfAnotherRoundChangesNothing) {
  runs(2);
  is_stopped(1);
  is_stopped(3);
  expect_state(State::Running);
  EXPECT_TRUE(stops.empty());
}

TEST_F(Agent, AMissingProgramIsFatal) {
  runs();
  start_fails();
  expect_state(State::Stopped);
  EXPECT_TRUE(newest_sent<control::Failed>()->is_fatal);
  EXPECT_EQ(newest_sent<control::Stopped>()->round, RoundNumber(1));
  EXPECT_TRUE(worker_leases.back().is_never());
  has_job_result(false);
  bye();
  expect_finish(How::Failure);
}

TEST_F(Agent, ARetryableStartFailureIsAnOrdinaryFailure) {
  runs();
  start_fails(ErrorKind::System);
  EXPECT_FALSE(newest_sent<control::Failed>()->is_fatal);
  EXPECT_FALSE(newest_sent<control::Failed>()->why.empty());
  EXPECT_EQ(newest_sent<control::Stopped>()->round, RoundNumber(1));
}

TEST_F(Agent, AStopBeforeTheFailedStart) {
  runs();
  is_stopped(1);
  start_fails();
  expect_state(State::Stopped);
  EXPECT_EQ(newest_sent<control::Stopped>()->round, RoundNumber(1));
}

TEST_F(Agent, FailureIsTheOutcomeOfTheJobNotOfTheNode) {
  runs();
  all_quiet();  // here all succeeded
  is_stopped(1);
  has_job_result(false);
  bye();
  expect_finish(How::Failure);
  EXPECT_EQ(finish->text, "rank 0 died");
  EXPECT_TRUE(finish->ends.empty());
}

TEST_F(Agent, ReturnsTheFailuresOfTheLastFailedRound) {
  runs(1);
  worker_ends(0, 7);
  worker_ends(1, -15);
  all_quiet();
  gets_assignment(2, 1);
  is_stopped(2);
  all_quiet();
  has_job_result(false);
  bye();
  ASSERT_EQ(finish->ends.size(), 2U);
  EXPECT_EQ(finish->ends[0].exit_code, 7);
  EXPECT_EQ(finish->restarts_used, 1);
}

TEST_F(Agent, ARejectionEndsWithItsReason) {
  connects();
  receives(control::Refused{"another --nnodes"});
  expect_finish(How::Error);
  EXPECT_EQ(finish->text, "the coordinator refused this agent: another --nnodes");
  EXPECT_FALSE(disconnect->is_reset);
}

TEST_F(Agent, R4_ARejectionWithLiveWorkersSendsNoFin) {
  runs();
  disconnects();
  connects();
  receives(control::Refused{"taken"});
  expect_finish(How::Error);
  EXPECT_TRUE(disconnect->is_reset);
}

TEST_F(Agent, WorkersMayEndAfterTheAgent) {
  runs();
  disconnects();
  connects();
  receives(control::Refused{"taken"});
  forget();
  all_quiet();
  EXPECT_TRUE(sent_messages.empty());
}

TEST_F(Agent, R9_OnlyByeEnds) {
  runs();
  all_quiet();
  bye();
  expect_no_finish();
  has_job_result(true);
  passes_answered(100s);
  expect_no_finish();
}

TEST_F(Agent, R9_EndsWithTheConnectionOnceItKnowsTheOutcome) {
  runs();
  all_quiet();
  has_job_result(true);
  disconnects();
  expect_finish(How::Success);
}

TEST_F(Agent, R9_TheJobContinuedWithoutTheNodeAndIsOver) {
  runs();
  has_job_result(true);
  EXPECT_EQ(stops.size(), 1U);
  bye();
  expect_no_finish();  // its workers end first
  all_quiet();
  expect_finish(How::Success);
}

TEST_F(Agent, R9_TheSameWithABrokenConnection) {
  runs();
  is_stopped(1);
  has_job_result(false);
  disconnects();
  expect_no_finish();
  all_quiet();
  expect_finish(How::Failure);
}

// The next job may run at the same endpoint already, and this node is no member of it.
TEST_F(Agent, ReconnectsNoMoreAfterBye) {
  runs();
  is_stopped(1);
  has_job_result(false);
  disconnects();
  EXPECT_FALSE(disconnect) << "other nodes may need to learn the outcome from this one";
  connects();
  bye();
  disconnects();
  EXPECT_TRUE(disconnect);
  expect_no_finish();
  all_quiet();
  expect_finish(How::Failure);
}

TEST_F(Agent, ASpareEndsWithTheOutcome) {
  is_in_touch();
  waits(true);
  has_job_result(true);
  bye();
  expect_finish(How::Success);
}

// ---------------------------------------------------------------- signals

TEST_F(Agent, ForwardsASignalAndLeaves) {
  runs();
  signal(2);
  expect_state(State::Leaving);
  EXPECT_EQ(stops.back().signal, 2);
  EXPECT_EQ(stops.back().grace, 30s);
  all_quiet();
  EXPECT_NE(newest_sent<control::Leave>(), nullptr);
  EXPECT_FALSE(disconnect->is_reset);
  expect_finish(How::Signal);
  EXPECT_EQ(finish->signal, 2);
}

TEST_F(Agent, ASecondSignalIsUrgent) {
  runs();
  signal(2);
  EXPECT_FALSE(stops.back().is_urgent);
  signal(2);
  EXPECT_TRUE(stops.back().is_urgent);
}

TEST_F(Agent, ASignalWhileStoppingTakesPrecedence) {
  runs();
  is_stopped(1);
  signal(2);
  expect_state(State::Leaving);
  has_job_result(false);
  bye();
  expect_no_finish();
  all_quiet();
  expect_finish(How::Signal);
  EXPECT_EQ(finish->text, "") << "there were workers";
}

TEST_F(Agent, AfterTheEndNothingHappens) {
  is_in_touch();
  signal(15);
  forget();
  gets_assignment(1);
  signal(15);
  passes(1000s);
  disconnects();
  EXPECT_TRUE(sent_messages.empty());
  EXPECT_TRUE(started.empty());
}

TEST_F(Agent, R9_StartsNothingOnceTheOutcomeIsKnown) {
  connects();
  is_welcomed();
  gets_assignment(1);
  expect_state(State::Starting);
  has_job_result(true);
  is_granted(4s);
  EXPECT_TRUE(started.empty());
  bye();
  expect_finish(How::Success);
}

TEST_F(Agent, AHangEndsTheRoundAndNamesTheHangingRank) {
  runs();
  WorkerExit hung;
  hung.local_rank = LocalRank(1);
  hung.hang = "no heartbeat for 9.0 s";
  call([&](agent::Effects& e) { core.on_hang(now, hung, e); });
  expect_state(State::Stopping);
  ASSERT_EQ(stops.size(), 1u);
  ASSERT_TRUE(newest_sent<control::Failed>());
  EXPECT_EQ(newest_sent<control::Failed>()->end.hang, hung.hang);
  worker_ends(0, -15);
  worker_ends(1, 0);  // it ends with success on a stop request: that counts as a failure too
  all_quiet();
  has_job_result(false);
  bye();
  expect_finish(How::Failure);
  ASSERT_EQ(finish->ends.size(), 2u);
  EXPECT_TRUE(finish->ends[1].is_hang());
  EXPECT_FALSE(finish->ends[0].is_hang());
}

TEST_F(Agent, IgnoresAHangInAnEndingRound) {
  runs();
  worker_ends(0, 3);
  forget();
  WorkerExit hung;
  hung.hang = "no heartbeat for 9.0 s";
  call([&](agent::Effects& e) { core.on_hang(now, hung, e); });
  EXPECT_TRUE(stops.empty());
  EXPECT_FALSE(newest_sent<control::Failed>());
}

}  // namespace
}  // namespace cpprun::test
