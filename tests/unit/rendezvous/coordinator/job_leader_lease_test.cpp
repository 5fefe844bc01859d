// A coordinator elected through etcd (R18): the state it persists before it sends, the limit of its
// worker leases, and the continuation of another leader's job.
#include <memory>

#include "common/limits/election.hpp"
#include "rendezvous/protocol/worker_lease_duration.hpp"
#include "tests/unit/rendezvous/coordinator/support_job.hpp"

namespace cpprun::test {
namespace {

using control::ReportedPhase;
using control::StopCause;

class JobLeaderLeaseTest : public JobTest {
 public:
  // a's process is the coordinator's.
  JobLeaderLeaseTest() {
    nodes(1, 3);
    is_elected("a", 7, std::nullopt);
  }
  // Another process; it knows only the persisted state.
  void is_elected(const std::string& name, int64_t term,
                  std::optional<control::PersistedJobState> facts) {
    for (auto& [of, p] : players) {
      p.session.reset();
      p.facts.assignment.reset();
      if (round_of(of) > RoundNumber()) p.facts.assignment = assignment(of);
      p.facts.term = Term(term - 1);
      p.received.clear();
    }
    CoordinatorOptions options{
        name, Term(term), player(name).hello.node.incarnation, limits::kWaitReminderInterval, {}};
    options.leader_lease = LeaderLease{run_id, std::move(facts), now + 1h};
    written.clear();
    std::destroy_at(&core);
    std::construct_at(&core, std::move(options));
  }
  void all_run() {
    for (const char* name : {"a", "b", "c"}) join(name);
    for (const char* name : {"a", "b", "c"}) sends_started(name);
  }
  void reconnects(const std::string& name, ReportedPhase reported_phase) {
    Player& p = player(name);
    returns(name, reported_phase, p.facts.assignment ? p.facts.assignment->round.value : 0);
  }
  void the_host_is_silent() {
    all_run();
    is_elected("b", 8, written.back());
  }
};

// ---------------------------------------------------------------- what is written

TEST_F(JobLeaderLeaseTest, R18_ARoundIsPersistedBeforeItsAssignmentsAreSent) {
  for (const char* name : {"a", "b"}) join(name);
  connects("c");
  sends_hello("c");
  const SessionId session = *player("c").session;
  Effects effects;
  core.on_message(now, session, over_the_wire(control::AgentMessage(player("c").facts)), effects);
  bool is_written = false;
  int64_t assignments = 0;
  for (const Effect& effect : effects) {
    if (const auto* facts = std::get_if<PersistState>(&effect)) {
      is_written = true;
      EXPECT_EQ(facts->facts.term, Term(7));
      EXPECT_EQ(facts->facts.round, RoundNumber(1));
      EXPECT_EQ(facts->facts.group_size, 3);
      EXPECT_EQ(facts->facts.host_rank, 0);
      EXPECT_FALSE(facts->facts.decided);
    }
    const auto* send = std::get_if<Send>(&effect);
    if (send == nullptr || !std::holds_alternative<control::RankAssignment>(send->message))
      continue;
    EXPECT_TRUE(is_written) << "sent before it was written";
    ++assignments;
  }
  EXPECT_EQ(assignments, 3);
}

TEST_F(JobLeaderLeaseTest, R18_TheOutcomeIsPersistedBeforeItIsSent) {
  all_run();
  for (const char* name : {"a", "b"}) sends_done(name);
  const size_t before = written.size();
  sends_done("c");
  ASSERT_EQ(written.size(), before + 1);
  ASSERT_TRUE(written.back().decided);
  EXPECT_TRUE(written.back().decided->is_success);
}

TEST_F(JobLeaderLeaseTest, R18_ChargesArePersistedWithTheNextRound) {
  all_run();
  sends_failed("c");
  for (const char* name : {"a", "b", "c"}) sends_stopped(name);
  EXPECT_EQ(written.back().round, RoundNumber(2));
  EXPECT_EQ(written.back().restart_count, 1);
}

TEST_F(JobLeaderLeaseTest, R18_WithoutALeaderLeaseNothingIsPersisted) {
  std::destroy_at(&core);
  std::construct_at(
      &core, CoordinatorOptions{"x", Term(7), std::nullopt, limits::kWaitReminderInterval, {}});
  all_run();
  EXPECT_EQ(round_of("a"), RoundNumber(1));
  EXPECT_TRUE(written.empty());
}

// ---------------------------------------------------------------- worker leases

TEST_F(JobLeaderLeaseTest, R18_NoWorkerLeaseOutlastsTheLeaderLease) {
  all_run();
  const auto worker_lease = [&] {
    sends("b", control::Ping{++player("b").seq});
    return received<control::Pong>("b")->worker_lease;
  };
  EXPECT_EQ(worker_lease(), worker_lease_of(job_spec.lease));
  core.lead_until(now + 1500ms);
  EXPECT_EQ(worker_lease(), 1500ms);
  core.lead_until(now - 1s);
  EXPECT_EQ(worker_lease(), 0s);
  core.lead_until(now + 1h);
  EXPECT_EQ(worker_lease(), worker_lease_of(job_spec.lease));
}

TEST_F(JobLeaderLeaseTest, R18_NothingIsSentAfterTheLeaderLease) {
  core.lead_until(now + 1s);
  EXPECT_TRUE(core.is_in_charge(now));
  EXPECT_FALSE(core.is_in_charge(now + 1s));
}

TEST_F(JobLeaderLeaseTest, R18_TheLocalAgentHasALeaseToo) {
  all_run();
  EXPECT_GT(received<control::Registered>("a")->heartbeat, 0s);
  player("a").is_silent = true;
  passes(limits::kNodeLease);
  expect_stop("b", StopCause::NodeLost);
}

TEST_F(JobLeaderLeaseTest, R18_ThereIsNoStandby) {
  player("b").facts.control_port = 4711;
  all_run();
  EXPECT_FALSE(assignment("c").standby);
}

TEST_F(JobLeaderLeaseTest, R18_IsForOneJobOnly) {
  run_id = "other";
  join("x");
  expect_refused("x", "no other");
  EXPECT_EQ(notes.back().event, "refused");
  EXPECT_EQ(notes.back().level, LogEvent::Level::Warning);
}

// ---------------------------------------------------------------- continuing

TEST_F(JobLeaderLeaseTest, R18_ContinuesImmediatelyWhenAllButTheHostReturned) {
  the_host_is_silent();
  reconnects("b", ReportedPhase::Stopped);
  reconnects("c", ReportedPhase::Stopped);
  EXPECT_EQ(phase(), Phase::Recovering);
  passes(limits::kHostLossDelay);
  expect_assignment("c", 2, 1, 4);
  EXPECT_EQ(assignment("c").term, Term(8));
  EXPECT_EQ(assignment("b").group_rank, 0) << "ranks stay in order";
}

TEST_F(JobLeaderLeaseTest, R18_ContinuesImmediatelyWhenTheHostReturned) {
  the_host_is_silent();
  for (const char* name : {"c", "a", "b"}) reconnects(name, ReportedPhase::Stopped);
  expect_assignment("a", 2, 0, 6);
}

TEST_F(JobLeaderLeaseTest, R18_WaitsASecondForAMissingNode) {
  the_host_is_silent();
  reconnects("b", ReportedPhase::Stopped);
  passes(limits::kHostLossDelay);
  EXPECT_EQ(phase(), Phase::Recovering);
  passes(limits::kLastCall - limits::kHostLossDelay);
  expect_assignment("b", 2, 0, 2);
}

TEST_F(JobLeaderLeaseTest, R18_NeverContinuesWorkersOfTheFormerCoordinator) {
  the_host_is_silent();
  for (const char* name : {"a", "b", "c"}) reconnects(name, ReportedPhase::Running);
  expect_stop("c", StopCause::NodeLost);
  for (const char* name : {"a", "b", "c"}) sends(name, control::Stopped{RoundNumber(1), 40001});
  expect_assignment("c", 2, 2, 6);
}

TEST_F(JobLeaderLeaseTest, R18_KeepsTheUsedBudget) {
  all_run();
  sends_failed("c");
  for (const char* name : {"a", "b", "c"}) sends_stopped(name);
  is_elected("b", 8, written.back());
  for (const char* name : {"a", "b", "c"}) reconnects(name, ReportedPhase::Stopped);
  EXPECT_EQ(assignment("c").round, RoundNumber(3));
  EXPECT_EQ(assignment("c").restart_count, 1);
}

// No node of the round is left, and still its number is not given again.
TEST_F(JobLeaderLeaseTest, R18_ThePersistedStateIsEnough) {
  all_run();
  is_elected("x", 8, written.back());
  join("x");
  passes(limits::kLastCall * 3);
  EXPECT_EQ(assignment("x").round, RoundNumber(2));
}

// Its connection broke before anybody else had come.
TEST_F(JobLeaderLeaseTest, R18_TheJobOutlivesItsLastNode) {
  all_run();
  is_elected("b", 8, written.back());
  join("x");
  dies("x");
  passes(limits::kNodeLease * 2);
  join("y");
  passes(limits::kLastCall * 3);
  EXPECT_EQ(assignment("y").round, RoundNumber(2)) << "its number was given";
}

TEST_F(JobLeaderLeaseTest, R18_AllWereDone) {
  all_run();
  is_elected("b", 8, written.back());
  for (const char* name : {"a", "b", "c"}) reconnects(name, ReportedPhase::Done);
  expect_decided("c", true);
}

TEST_F(JobLeaderLeaseTest, R18_APersistedOutcomeIsSentToFormerMembers) {
  all_run();
  for (const char* name : {"a", "b", "c"}) sends_done(name);
  is_elected("b", 8, written.back());
  reconnects("b", ReportedPhase::Done);
  expect_decided("b", true);
  acks("b");
  EXPECT_TRUE(received<control::Bye>("b"));
}

TEST_F(JobLeaderLeaseTest, R18_ADecidedJobMayStartAgain) {
  all_run();
  for (const char* name : {"a", "b", "c"}) sends_done(name);
  is_elected("x", 8, written.back());
  for (const char* name : {"x", "y", "z"}) join(name);
  EXPECT_FALSE(received<control::JobResult>("x"));
  EXPECT_EQ(assignment("x").round, RoundNumber(1));
  EXPECT_EQ(assignment("x").restart_count, 0);
}

TEST_F(JobLeaderLeaseTest, R18_APersistedOutcomeIsSentToFormerMembersInTheNextJobToo) {
  all_run();
  for (const char* name : {"a", "b", "c"}) sends_done(name);
  is_elected("x", 8, written.back());
  join("x");
  reconnects("a", ReportedPhase::Done);
  expect_decided("a", true);
  acks("a");
  EXPECT_TRUE(received<control::Bye>("a"));
  EXPECT_FALSE(received<control::JobResult>("x")) << "it begins the next job";
  for (const char* name : {"y", "z"}) join(name);
  EXPECT_EQ(assignment("x").round, RoundNumber(1));
  reconnects("b", ReportedPhase::Done);
  expect_decided("b", true);
  acks("b");
  EXPECT_TRUE(received<control::Bye>("b")) << "it takes no part in the round that runs";
}

TEST_F(JobLeaderLeaseTest, R18_AMemberOfTheJobBeforeTheDecidedOneGetsNoOutcome) {
  all_run();
  for (const char* name : {"a", "b", "c"}) sends_done(name);
  is_elected("x", 8, written.back());
  const control::Register before = player("a").facts;
  for (const char* name : {"x", "y", "z"}) join(name);
  for (const char* name : {"x", "y", "z"}) sends_done(name);
  const control::PersistedJobState decided = written.back();
  ASSERT_TRUE(decided.decided);
  EXPECT_EQ(decided.first_term, Term(8));
  is_elected("v", 9, decided);
  player("a").facts = before;
  reconnects("a", ReportedPhase::Done);
  expect_refused("a", "its outcome is not known");
  player("b").facts.term = Term(7);
  player("b").facts.assignment.reset();
  join("b");
  EXPECT_TRUE(received<control::Registered>("b")) << "it was in no round, and begins the next job";
}

// The leader was the last of three nodes, and does not return.
TEST_F(JobLeaderLeaseTest, R18_AnOutcomeThatFewNodesNeedIsReadable) {
  is_elected("c", 7, std::nullopt);
  all_run();
  control::PersistedJobState facts = written.back();
  EXPECT_EQ(facts.host_rank, 2);
  facts.restart_count = job_spec.max_restarts;
  player("a").facts.charged = control::RestartCharge::Failure;
  is_elected("a", 8, facts);
  reconnects("a", ReportedPhase::Stopped);
  passes(limits::kLastCall);
  expect_decided("a", false);
  EXPECT_EQ(written.back().group_size, 3);
  EXPECT_TRUE(control::decode_job_state(control::encode_job_state(written.back())));
}

// The delay alone wakes the coordinator, although the time of a last call has passed.
TEST_F(JobLeaderLeaseTest, R18_ADelayedRoundWithoutFormerMembersWakesNobodyTooEarly) {
  job_spec.restart_backoff = 30s;
  control::PersistedJobState facts;
  facts.term = facts.first_term = Term(7);
  facts.round = RoundNumber(4);
  facts.group_size = 1;
  facts.past_failures.quick = 5;
  is_elected("x", 8, facts);
  join("x");
  passes(limits::kLastCall * 3);
  EXPECT_GT(core.next_deadline(), now);
}

// The key was made anew, for example by hand: what the agents bring is all there is (R13).
TEST_F(JobLeaderLeaseTest, R18_WithoutPersistedStateItRecoversFromReports) {
  all_run();
  is_elected("b", 8, std::nullopt);
  for (const char* name : {"a", "b"}) reconnects(name, ReportedPhase::Stopped);
  passes(limits::kLastCall * 2);
  EXPECT_EQ(phase(), Phase::Recovering) << "workers of c may live";
  passes(limits::kNodeLease);
  EXPECT_EQ(assignment("a").round, RoundNumber(2));
}

// ---------------------------------------------------------------- leaving

TEST_F(JobLeaderLeaseTest, R18_ADrainingHostLeavesTheJobToTheNextLeader) {
  all_run();
  drains("a");
  EXPECT_FALSE(core.is_idle()) << "workers live";
  sends("a", control::Leave{"asked to stop", false});
  for (const char* name : {"b", "c"}) sends_stopped(name);
  EXPECT_TRUE(core.may_exit());
  EXPECT_TRUE(core.is_idle());
  EXPECT_EQ(round_of("b"), RoundNumber(1)) << "it forms nothing more";
}

}  // namespace
}  // namespace cpprun::test
