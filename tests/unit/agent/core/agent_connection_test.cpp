// The agent's core: broken connections, repeated reports, worker lease (R6).
#include "common/limits/suspension.hpp"
#include "tests/unit/agent/core/support_agent.hpp"

namespace cpprun::test {
namespace {

using Agent = AgentTest;

// ---------------------------------------------------------------- connecting again

TEST_F(Agent, R4_EachConnectionHasAGreaterNumber) {
  connects();
  disconnects();
  connects();
  EXPECT_EQ(newest_sent<control::Hello>()->connection, 2);
}

TEST_F(Agent, ReportsItsStateWhenItReconnects) {
  runs(3);
  disconnects();
  connects();
  EXPECT_EQ(newest_sent<control::Register>()->reported_phase, ReportedPhase::Running);
  EXPECT_EQ(newest_sent<control::Register>()->round, RoundNumber(3));
  is_stopped(3);
  disconnects();
  connects();
  EXPECT_EQ(newest_sent<control::Register>()->reported_phase, ReportedPhase::Running)
      << "still stopping";
  all_quiet();
  disconnects();
  connects();
  EXPECT_EQ(newest_sent<control::Register>()->reported_phase, ReportedPhase::Stopped);
  is_granted(4s);
  gets_assignment(4);
  all_quiet();
  disconnects();
  connects();
  EXPECT_EQ(newest_sent<control::Register>()->reported_phase, ReportedPhase::Done);
  EXPECT_EQ(newest_sent<control::Register>()->term, Term(1));
}

TEST_F(Agent, R13_ReportsTheRoundThatItKnows) {
  connects();
  EXPECT_FALSE(newest_sent<control::Register>()->assignment);
  disconnects();
  runs(3);
  is_stopped(3);
  disconnects();
  connects();
  ASSERT_TRUE(newest_sent<control::Register>()->assignment);
  EXPECT_EQ(newest_sent<control::Register>()->assignment->round, RoundNumber(3));
  EXPECT_EQ(newest_sent<control::Register>()->charged, control::RestartCharge::Failure);
  all_quiet();
  gets_assignment(4);
  disconnects();
  connects();
  EXPECT_EQ(newest_sent<control::Register>()->charged, control::RestartCharge::None);
}

TEST_F(Agent, R13_IgnoresACoordinatorOfAnOlderTerm) {
  runs(3);
  disconnects();
  connects();
  term = 0;
  forget();
  is_welcomed();
  EXPECT_EQ(reconnects, 1);
  is_stopped(3);
  EXPECT_EQ(core.state(), State::Running);
  disconnects();
  connects();
  is_welcomed();
  EXPECT_EQ(reconnects, 2);
  EXPECT_EQ(warnings, 1) << "the agent warns once about each such coordinator";
  term = 2;
  disconnects();
  connects();
  is_welcomed();
  is_stopped(3);
  EXPECT_EQ(core.state(), State::Stopping);
}

// It is the standby of a round that runs.
class AgentStandby : public AgentTest {
 public:
  AgentStandby() {
    connects();
    welcome(true);
    control::RankAssignment assignment = assignment_of(1);
    assignment.standby = control::Standby{options().hello.node.incarnation, "10.0.0.2", 4711};
    is_granted(4s);
    receives(assignment);
    disconnects();
  }
  void welcome(bool is_standby) {
    control::Registered welcome;
    welcome.term = Term(term);
    welcome.heartbeat = 1s;
    welcome.lease = 5s;
    welcome.is_standby = is_standby;
    receives(welcome);
  }
  void is_refused(const Endpoint& place) {
    call([&](agent::Effects& e) { core.on_refused(now, {place}, e); });
  }
};

TEST_F(AgentStandby, R16_LeadsWhenTheCoordinatorsEndpointRefuses) {
  is_refused(Endpoint{"10.0.0.9", 29500});
  EXPECT_FALSE(taken_over) << "another place";
  is_refused(kHead);
  ASSERT_TRUE(taken_over);
  EXPECT_EQ(taken_over->term, Term(term + 1));
  EXPECT_EQ(taken_over->place.port, 4711);
}

TEST_F(AgentStandby, R16_DoesNotLeadWithoutAWorkerLease) {
  passes(4s);
  is_refused(kHead);
  EXPECT_FALSE(taken_over);
  connects();
  EXPECT_TRUE(newest_sent<control::Register>()->has_evidence);
}

TEST_F(AgentStandby, R14_DoesNotLeadAfterLosingTheStandbyRole) {
  connects();
  welcome(false);
  is_granted(4s);
  disconnects();
  is_refused(kHead);
  EXPECT_FALSE(taken_over);
}

TEST_F(Agent, R17_ASpareReportsThatItKnowsAStandby) {
  connects();
  is_welcomed();
  EXPECT_FALSE(newest_sent<control::Register>()->knows_standby);
  control::Wait wait{"a round runs", true, false};
  wait.standby = control::Standby{Incarnation(12), "10.0.0.3", 4711};
  receives(wait);
  disconnects();
  connects();
  EXPECT_TRUE(newest_sent<control::Register>()->knows_standby);
  control::Wait blank{"a standby leads", false, false};
  blank.awaits_redirect = true;
  receives(blank);
  disconnects();
  connects();
  EXPECT_TRUE(newest_sent<control::Register>()->knows_standby)
      << "this coordinator does not know the job";
  waits(true);
  disconnects();
  connects();
  EXPECT_FALSE(newest_sent<control::Register>()->knows_standby)
      << "the job has no standby any more";
}

TEST_F(Agent, R17_TriesOtherEndpointsWithoutAnAnswer) {
  connects();
  waits(false);
  passes(10s - 1ms);
  EXPECT_EQ(reconnects, 0);
  passes(1ms);
  EXPECT_EQ(reconnects, 1);
}

TEST_F(AgentStandby, R17_FollowsARedirect) {
  connects();
  receives(control::Redirect{Term(term + 1), "10.0.0.3", 4712});
  ASSERT_TRUE(routes);
  EXPECT_TRUE(routes->is_sure);
  EXPECT_EQ(routes->places.front(), (Endpoint{"10.0.0.3", 4712}));
  EXPECT_EQ(reconnects, 1);
}

TEST_F(Agent, ReportsAFailureAfterReconnecting) {
  runs();
  disconnects();
  worker_ends(0, 5);
  all_quiet();
  forget();
  connects();
  EXPECT_EQ(newest_sent<control::Register>()->reported_phase, ReportedPhase::Running)
      << "or its failure would be free";
  EXPECT_EQ(newest_sent<control::Failed>()->end.exit_code, 5);
  EXPECT_EQ(newest_sent<control::Stopped>()->round, RoundNumber(1));
}

TEST_F(Agent, RepeatsAFailureThatTheConnectionMayHaveLost) {
  runs();
  worker_ends(0, 5);
  disconnects();  // with the report in flight
  forget();
  connects();
  EXPECT_EQ(times<control::Failed>(), 1);
  disconnects();
  connects();
  EXPECT_EQ(times<control::Failed>(), 2) << "until somebody shows that it is known";
  is_stopped(1, StopCause::Failure);
  disconnects();
  connects();
  EXPECT_EQ(times<control::Failed>(), 2);
}

TEST_F(Agent, ANewAssignmentConfirmsTheFailure) {
  runs();
  worker_ends(0, 5);
  all_quiet();
  gets_assignment(2);
  disconnects();
  forget();
  connects();
  EXPECT_EQ(newest_sent<control::Failed>(), nullptr);
}

// ---------------------------------------------------------------- the worker lease

TEST_F(Agent, R6_NoWorkersBeforeTheFirstPong) {
  connects();
  is_welcomed();
  gets_assignment(1);
  expect_state(State::Starting);
  EXPECT_TRUE(started.empty());
  is_granted(4s);
  expect_state(State::Running);
  EXPECT_EQ(worker_leases.back(), now + 4s);
}

TEST_F(Agent, R6_PingsEveryHeartbeat) {
  is_in_touch();
  passes_answered(10s);
  EXPECT_EQ(times<control::Ping>(), 11);
}

TEST_F(Agent, R6_SendsSigtermASecondBeforeTheDeadlineAndSigkillAtIt) {
  runs();
  Instant granted = now;
  passes(2999ms);
  EXPECT_TRUE(stops.empty());
  passes(1ms);
  ASSERT_EQ(stops.size(), 1U);
  EXPECT_EQ(stops[0].signal, 15);
  EXPECT_EQ(stops[0].grace, 1s);
  passes(1s);
  ASSERT_EQ(stops.size(), 2U);
  EXPECT_EQ(stops[1].signal, 9);
  EXPECT_EQ(now, granted + 4s);
  EXPECT_EQ(worker_leases.back(), granted + 4s);
  passes(10s);
  EXPECT_EQ(stops.size(), 2U);
}

TEST_F(Agent, R6_AShortWorkerLeaseGivesHalfOfItAsNotice) {
  connects();
  is_welcomed(100ms);
  is_granted(1s);
  gets_assignment(1);
  passes(499ms);
  EXPECT_TRUE(stops.empty());
  passes(1ms);
  EXPECT_EQ(stops.size(), 1U);
  EXPECT_EQ(stops[0].grace, 500ms);
}

TEST_F(Agent, R6_TheDeadlineCountsFromTheSendTimeOfThePing) {
  connects();
  is_welcomed();
  Instant sent = now;
  now = now + 700ms;
  is_granted(4s);
  gets_assignment(1);
  EXPECT_EQ(worker_leases.back(), sent + 4s);
}

TEST_F(Agent, R6_ADuplicateOrForeignPongGivesNoWorkerLease) {
  runs();
  int64_t first = newest_sent<control::Ping>()->seq;
  disconnects();
  connects();
  Instant before = worker_leases.back();
  receives(control::Pong{first, 100s});
  receives(control::Pong{-1, 100s});
  EXPECT_EQ(worker_leases.back(), before);
  is_granted(5s);
  EXPECT_EQ(worker_leases.back(), now + 5s);
  is_granted(9s);
  receives(control::Pong{first + 1000, 100s});
  EXPECT_EQ(worker_leases.back(), now + 5s) << "answered already, or never sent";
}

TEST_F(Agent, R6_ASmallerWorkerLeaseDoesNotShortenALongerOne) {
  runs();
  Instant before = worker_leases.back();
  passes(1s);
  is_granted(1s);
  EXPECT_EQ(worker_leases.back(), before);
}

TEST_F(Agent, R6_StoppingWorkersAreKilledAtTheDeadlineToo) {
  runs();
  disconnects();
  worker_ends(0, 1);  // grace: 30 s
  passes(4s);
  EXPECT_EQ(stops.back().signal, 9);
}

TEST_F(Agent, R6_AnAlmostExpiredWorkerLeaseStartsNothing) {
  is_in_touch();
  disconnects();
  passes(3s);
  connects();
  gets_assignment(1);
  expect_state(State::Starting);
  is_granted(4s);
  expect_state(State::Running);
}

TEST_F(Agent, R6_TheCoordinatorsOwnAgentHasNoWorkerLease) {
  connects();
  is_welcomed(0s);
  gets_assignment(1);
  expect_state(State::Running);
  EXPECT_TRUE(worker_leases.back().is_never());
  EXPECT_TRUE(core.next_deadline().is_never());
  EXPECT_EQ(newest_sent<control::Ping>(), nullptr);
}

// Suspended for a minute, perhaps with all others: it asks before it stops the workers.
TEST_F(Agent, R11_AfterASuspensionAnAnswerKeepsTheRound) {
  runs();
  now = now + 60s;
  forget();
  passes(0s);
  EXPECT_NE(newest_sent<control::Ping>(), nullptr);
  passes(1500ms);
  EXPECT_EQ(reconnects, 0);
  is_granted(4s);
  passes(1s);
  expect_state(State::Running);
  EXPECT_TRUE(stops.empty());
  EXPECT_EQ(worker_leases.back(), now - 1500ms + 4s);
}

TEST_F(Agent, R11_WithoutAnAnswerItKillsTheWorkersAfterASuspension) {
  runs();
  now = now + 60s;
  forget();
  passes(0s);
  expect_state(State::Running);
  passes(limits::kResumeAnswerTimeout);
  expect_state(State::Stopping);
  ASSERT_FALSE(stops.empty());
  EXPECT_EQ(stops.back().signal, kKill);
  EXPECT_EQ(reconnects, 1);
}

// The coordinator has counted the node as lost and has ended its connection.
TEST_F(Agent, R11_ABrokenConnectionEndsTheWaitAfterASuspension) {
  runs();
  now = now + 60s;
  forget();
  passes(0s);
  disconnects();
  passes(0s);
  expect_state(State::Stopping);
  EXPECT_EQ(stops.back().signal, kKill);
}

// A pong from before the suspension was not read in time.
TEST_F(Agent, R11_AnOldPongDoesNotEndTheWait) {
  runs();
  passes(1s);
  const control::Pong old{newest<control::Ping>(sent_messages)->seq, 4s};
  now = now + 60s;
  receives(old);
  passes(0s);
  expect_state(State::Running);
  passes(limits::kResumeAnswerTimeout);
  expect_state(State::Stopping);
}

// It was not suspended: its coordinator is silent, and it stops the workers in time.
TEST_F(Agent, R11_ALateTimerIsNoSuspension) {
  runs();
  passes(2500ms);
  now = now + 1400ms;
  passes(0s);
  expect_state(State::Stopping);
}

TEST_F(Agent, R11_APongReadTooLateAlsoMakesItNoFailure) {
  runs();
  passes(1s);  // the second ping is sent; then the agent is frozen, and the pong stays unread
  now = now + 3500ms;
  is_granted(4s);
  are_killed_by_reaper();
  worker_ends(0, -9);
  EXPECT_EQ(newest_sent<control::Failed>(), nullptr);
  expect_state(State::Stopping);
}

// Only this agent was suspended. A worker may outlive SIGKILL, so that no exit comes.
TEST_F(Agent, R11_ALeaseThatComesAfterTheReapersKillDoesNotKeepTheRound) {
  runs();
  now = now + 60s;
  forget();
  passes(0s);
  expect_state(State::Running);
  is_granted(4s);
  expect_state(State::Running);
  EXPECT_TRUE(stops.empty());
  are_killed_by_reaper();
  expect_state(State::Stopping);
  ASSERT_FALSE(stops.empty());
  EXPECT_EQ(stops.back().grace, 0s);
  EXPECT_EQ(newest_sent<control::Failed>(), nullptr);
}

TEST_F(Agent, R11_AKillAfterTheEndOfTheRoundChangesNothing) {
  runs();
  is_stopped(1);
  all_quiet();
  expect_state(State::Stopped);
  forget();
  are_killed_by_reaper();
  expect_state(State::Stopped);
  EXPECT_TRUE(stops.empty());
}
TEST_F(Agent, R11_AWorkerKilledByTheReaperIsNoFailure) {
  runs();
  now = now + 60s;  // frozen: the exit is read before the timer runs
  forget();
  worker_ends(0, -9);
  EXPECT_EQ(newest_sent<control::Failed>(), nullptr);
  EXPECT_TRUE(failures.empty());
  ASSERT_FALSE(stops.empty());
  EXPECT_EQ(stops.back().grace, 0s);
}

TEST_F(Agent, ReconnectsToASilentCoordinatorAfterANodeLease) {
  is_in_touch();
  waits(false);
  passes(4s);
  EXPECT_EQ(reconnects, 0);
  passes(1s);
  EXPECT_EQ(reconnects, 1);
  passes(4s);
  EXPECT_EQ(reconnects, 1);
}

}  // namespace
}  // namespace cpprun::test
