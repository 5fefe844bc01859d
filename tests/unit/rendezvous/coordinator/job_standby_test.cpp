// The coordinator of a job after the death of the agent that hosts it (R14 to R17).
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>

#include "rendezvous/observe/status.hpp"
#include "tests/unit/rendezvous/coordinator/support_job.hpp"

namespace cpprun::test {
namespace {

using control::ReportedPhase;
using control::StopCause;

class JobStandbyTest : public JobTest {
 public:
  // a hosts the coordinator, b is the standby, c another node.
  JobStandbyTest() {
    nodes(1, 3);
    for (const char* name : {"a", "b", "c"}) {
      player(name).facts.control_port = 4700 + id_of(name);
    }
    is_led_by("a", 7, "");
  }
  std::string standby_key;  // the key of the job that the next standby leads
  int64_t id_of(const std::string& name) {
    return static_cast<int64_t>(player(name).hello.node.incarnation.value);
  }
  // Another process; it has no state.
  void is_led_by(const std::string& name, int64_t term, const std::string& standby_of) {
    for (auto& [of, p] : players) {
      p.session.reset();
      p.facts.assignment.reset();
      if (round_of(of) > RoundNumber()) p.facts.assignment = assignment(of);
      p.facts.term = assignment(of).term;
      p.received.clear();
    }
    CoordinatorOptions options{
        name, Term(term), player(name).hello.node.incarnation, limits::kWaitReminderInterval, {}};
    options.standby_of = standby_of;
    if (!standby_of.empty()) options.job_key = standby_key;
    std::destroy_at(&core);
    std::construct_at(&core, std::move(options));
  }
  void all_run() {
    for (const char* name : {"a", "b", "c"}) join(name);
    for (const char* name : {"a", "b", "c"}) sends_started(name);
  }
  void reconnects(const std::string& name, ReportedPhase reported_phase, bool has_evidence = true) {
    Player& p = player(name);
    p.facts.has_worker_lease = reported_phase == ReportedPhase::Running;
    p.facts.has_evidence = has_evidence;
    returns(name, reported_phase, p.facts.assignment ? p.facts.assignment->round.value : 0);
  }
};

// It receives no rank assignment of a round that stops, so only the wait can name the standby.
TEST_F(JobStandbyTest, AMemberThatMissedItsRankAssignmentLearnsTheStandby) {
  for (const char* name : {"a", "b", "c"}) join(name);
  forget("c");
  is_cut_off("c");
  sends_failed("a");
  returns("c", ReportedPhase::Idle, 0);
  const auto* wait = received<control::Wait>("c");
  ASSERT_TRUE(wait);
  ASSERT_TRUE(wait->standby);
  EXPECT_EQ(wait->standby->node, player("b").hello.node.incarnation);
}

TEST_F(JobStandbyTest, StatusShowsLeaderAndStandby) {
  all_run();
  const auto status = nlohmann::json::parse(status_json(core));
  std::map<int64_t, std::pair<bool, bool>> by_rank;
  for (const auto& node : status["jobs"].begin().value()["nodes"]) {
    by_rank[node["group_rank"]] = {node["is_host"], node["is_standby"]};
  }
  const std::map<int64_t, std::pair<bool, bool>> expected{
      {0, {true, false}}, {1, {false, true}}, {2, {false, false}}};
  EXPECT_EQ(by_rank, expected);
}

TEST_F(JobStandbyTest, R14_ASpareLearnsTheStandby) {
  all_run();
  join("d");
  const auto* wait = received<control::Wait>("d");
  ASSERT_NE(wait, nullptr);
  ASSERT_TRUE(wait->standby);
  EXPECT_TRUE(wait->standby->node == received<control::RankAssignment>("a")->standby->node);
}

TEST_F(JobStandbyTest, R17_SparesThatKnowAStandbyFormNoRoundOfTheirOwn) {
  is_led_by("a", 8, "");
  for (const char* name : {"c", "d"}) {
    player(name).facts.knows_standby = true;
    join(name);
  }
  join("e");  // knows nothing of the job
  passes(limits::kLastCall);
  EXPECT_EQ(received<control::RankAssignment>("c"), nullptr);
  EXPECT_EQ(received<control::RankAssignment>("e"), nullptr);
  ASSERT_TRUE(received<control::Wait>("c"));
  EXPECT_TRUE(received<control::Wait>("c")->awaits_redirect);
  EXPECT_TRUE(received<control::Wait>("c")->why.starts_with("its standby coordinator leads"));
  leaves("c");
  EXPECT_EQ(received<control::RankAssignment>("e"), nullptr) << "d knows it too";
  leaves("d");
  passes(limits::kLastCall);
  EXPECT_NE(received<control::RankAssignment>("e"), nullptr) << "no node here knows of a standby";
}

TEST_F(JobStandbyTest, R17_ADeadStandbyIsNotAwaitedForever) {
  is_led_by("a", 8, "");
  player("c").facts.knows_standby = true;
  join("c");
  passes(job_spec.lease + limits::kRedirectTimeout);
  EXPECT_NE(received<control::RankAssignment>("c"), nullptr);
}

TEST_F(JobStandbyTest, R14_TheFirstMemberAfterTheHostIsChosen) {
  all_run();
  for (const char* name : {"a", "b", "c"}) {
    ASSERT_TRUE(assignment(name).standby) << name;
    EXPECT_EQ(assignment(name).standby->node, player("b").hello.node.incarnation);
    EXPECT_EQ(assignment(name).standby->port, 4700 + id_of("b"));
    EXPECT_EQ(assignment(name).host_rank, 0);
  }
}

TEST_F(JobStandbyTest, R14_AStandaloneCoordinatorHasNone) {
  std::destroy_at(&core);
  std::construct_at(
      &core, CoordinatorOptions{"x", Term(7), std::nullopt, limits::kWaitReminderInterval, {}});
  all_run();
  EXPECT_FALSE(assignment("a").standby);
}

TEST_F(JobStandbyTest, R14_ADeadStandbyIsReplaced) {
  all_run();
  dies("b");
  passes(limits::kDeathGrace);
  for (const char* name : {"a", "c"}) sends_stopped(name);
  ASSERT_TRUE(assignment("c").standby);
  EXPECT_EQ(assignment("c").standby->node, player("c").hello.node.incarnation);
}

TEST_F(JobStandbyTest, R14_AStandbyLostInSilenceIsTheLast) {
  all_run();
  player("b").is_silent = true;
  passes(limits::kNodeLease);
  for (const char* name : {"a", "c"}) sends_stopped(name);
  EXPECT_EQ(assignment("c").round, RoundNumber(2));
  EXPECT_FALSE(assignment("c").standby);
}

// The next world names none, and does not reach it if it is a spare then: it would take over.
TEST_F(JobStandbyTest, R14_ALostStandbyThatReturnsBeforeTheNextRoundIsNone) {
  all_run();
  EXPECT_EQ(assignment("c").standby->node, player("b").hello.node.incarnation);
  player("b").is_silent = true;
  passes(limits::kNodeLease);
  player("b").is_silent = false;
  returns("b", ReportedPhase::Stopped, 1);
  EXPECT_FALSE(received<control::Registered>("b")->is_standby);
  for (const char* name : {"a", "c"}) sends_stopped(name);
  EXPECT_EQ(assignment("c").round, RoundNumber(2));
  EXPECT_FALSE(assignment("c").standby);
}

// A standby of an earlier round may still run, and act on its last `registered`.
TEST_F(JobStandbyTest, R14_ARecoveredRoundWithoutAStandbyHasNone) {
  all_run();
  player("b").is_silent = true;
  passes(limits::kNodeLease);
  for (const char* name : {"a", "c"}) sends_stopped(name);
  is_led_by("a", 9, "");
  for (const char* name : {"a", "c"}) reconnects(name, ReportedPhase::Stopped);
  passes(limits::kNodeLease);
  EXPECT_EQ(assignment("c").round, RoundNumber(3));
  EXPECT_FALSE(assignment("c").standby);
}

// The standby is connected, and acts on its last `registered`.
TEST_F(JobStandbyTest, R14_TheStandbyStaysWhenARoundHasNoPlaceForIt) {
  all_run();
  control::AdminCommand order;
  order.kind = control::AdminCommandKind::Scale;
  order.nodes = 1;
  sends("a", order);
  for (const char* name : {"a", "b", "c"}) sends_stopped(name);
  EXPECT_EQ(assignment("a").round, RoundNumber(2));
  EXPECT_EQ(assignment("b").round, RoundNumber(1));
  ASSERT_TRUE(assignment("a").standby);
  EXPECT_EQ(assignment("a").standby->node, player("b").hello.node.incarnation);
}

TEST_F(JobStandbyTest, R14_NoRoundFormsWhileTheStandbyIsCutOff) {
  all_run();
  sends_failed("c");
  for (const char* name : {"a", "b"}) sends_stopped(name);
  is_cut_off("b");
  sends_stopped("c");
  EXPECT_EQ(assignment("c").round, RoundNumber(1));
  passes(limits::kNodeLease);
  EXPECT_EQ(assignment("c").round, RoundNumber(2));
}

// It must not take the coordinator's leaving for its death.
TEST_F(JobStandbyTest, R14_TheEndWaitsForADisconnectedStandby) {
  all_run();
  sends_done("b");
  is_cut_off("b");
  for (const char* name : {"a", "c"}) sends_done(name);
  for (const char* name : {"a", "c"}) acks(name);
  EXPECT_FALSE(received<control::Bye>("c"));
  passes(limits::kNodeLease);
  EXPECT_TRUE(received<control::Bye>("c"));
}

TEST_F(JobStandbyTest, R16_TheStandbyContinuesOnceTheOthersReturned) {
  all_run();
  is_led_by("b", 8, run_id);
  reconnects("b", ReportedPhase::Running);
  reconnects("c", ReportedPhase::Running);
  EXPECT_EQ(phase(), Phase::Recovering) << "the host's workers may live for a moment";
  passes(limits::kDeathGrace * 2);
  expect_stop("c", StopCause::NodeLost);
  for (const char* name : {"b", "c"}) sends(name, control::Stopped{RoundNumber(1), 40001});
  expect_assignment("c", 2, 1, 4);
  EXPECT_EQ(assignment("c").term, Term(8));
  EXPECT_TRUE(assignment("c").is_led_by_standby);
  EXPECT_EQ(assignment("c").standby->node, player("c").hello.node.incarnation);
}

// Agents that know nothing of the job have formed another one at the endpoint, with a greater term.
TEST_F(JobStandbyTest, R10_TheStandbyContinuesNoOtherJobWithTheSameRunId) {
  all_run();
  standby_key = "key";
  is_led_by("b", 8, run_id);
  for (const char* name : {"b", "c"}) player(name).facts.assignment->job_key = standby_key;
  control::RankAssignment other = *player("c").facts.assignment;
  other.term = player("d").facts.term = Term(20);
  other.round = RoundNumber(5);
  other.standby.reset();
  other.job_key = "another key";
  player("d").facts.assignment = other;
  for (const char* name : {"b", "d", "c"}) reconnects(name, ReportedPhase::Stopped);
  passes(limits::kNodeLease);
  EXPECT_EQ(assignment("c").job_key, standby_key);
  EXPECT_EQ(assignment("c").round, RoundNumber(6)) << "d has received a round 5";
  EXPECT_EQ(assignment("d").round, RoundNumber(6));
  EXPECT_TRUE(assignment("c").standby) << "its own job had one";
}

TEST_F(JobStandbyTest, R17_TheEndpointContinuesNothingWithoutTheStandby) {
  all_run();
  is_led_by("a", 9, "");
  reconnects("c", ReportedPhase::Running);
  passes(limits::kNodeLease * 3);
  EXPECT_EQ(phase(), Phase::Recovering);
  reconnects("b", ReportedPhase::Stopped);
  EXPECT_NE(phase(), Phase::Recovering) << "it leads nothing";
}

TEST_F(JobStandbyTest, R17_ARoundOfTheStandbyStaysThereUnlessItIsDead) {
  all_run();
  is_led_by("b", 8, run_id);
  reconnects("b", ReportedPhase::Running);
  reconnects("c", ReportedPhase::Running);
  passes(limits::kDeathGrace * 2);
  for (const char* name : {"b", "c"}) sends(name, control::Stopped{RoundNumber(1), 40001});
  is_led_by("a", 9, "");
  reconnects("c", ReportedPhase::Stopped, false);
  passes(limits::kNodeLease * 3);
  EXPECT_EQ(phase(), Phase::Recovering) << "its coordinator may live";
  reconnects("c", ReportedPhase::Stopped, true);
  passes(limits::kNodeLease - 1ms);
  EXPECT_EQ(phase(), Phase::Recovering) << "it may have died a moment ago, and granted till then";
  passes(1ms);
  EXPECT_NE(phase(), Phase::Recovering);
}

// One that has no workers does not ping before it is welcomed.
TEST_F(JobStandbyTest, R17_ANodeThatWaitsForAStandbyIsNotLost) {
  all_run();
  is_led_by("a", 9, "");
  reconnects("c", ReportedPhase::Idle);
  player("c").is_silent = true;
  passes(limits::kNodeLease * 3);
  EXPECT_TRUE(player("c").session);
  player("c").is_silent = false;
  reconnects("b", ReportedPhase::Stopped);
  EXPECT_TRUE(received<control::Registered>("c"));
  player("c").is_silent = true;
  passes(limits::kNodeLease);
  EXPECT_EQ(job().nodes().count(player("c").hello.node.incarnation), 0U) << "its lease had begun";
}

TEST_F(JobStandbyTest, R17_RedirectsIfItIssuedNoWorkerLease) {
  all_run();
  is_led_by("a", 9, "");
  reconnects("c", ReportedPhase::Running);
  connects("b");
  sends_hello("b");
  sends("b", control::AnnounceLeader{Term(8), "10.0.0.2", 4702});
  ASSERT_TRUE(received<control::Redirect>("c"));
  EXPECT_EQ(received<control::Redirect>("c")->port, 4702);
  join("d");
  EXPECT_TRUE(received<control::Redirect>("d")) << "the coordinator redirects later nodes too";
}

TEST_F(JobStandbyTest, R15_AHostThatIsAskedToStopLeavesTheJobToTheStandby) {
  all_run();
  drains("a");
  sends("a", control::Leave{"asked to stop", false});
  for (const char* name : {"b", "c"}) sends_stopped(name);
  EXPECT_EQ(phase(), Phase::WaitingForNodes);
  EXPECT_TRUE(core.may_exit());
}

TEST_F(JobStandbyTest, R15_AnUnusableHostLeavesTheJobToTheStandby) {
  all_run();
  is_unusable("a");
  for (const char* name : {"b", "c"}) sends_stopped(name);
  EXPECT_EQ(phase(), Phase::WaitingForNodes);
  EXPECT_TRUE(core.may_exit());
}

// The signal came while it was cut off from its own coordinator.
TEST_F(JobStandbyTest, R15_AHostThatReturnsDrainingLeavesTheJobToTheStandbyToo) {
  all_run();
  sends_failed("c");
  is_cut_off("a");
  player("a").facts.is_draining = true;
  reconnects("a", ReportedPhase::Stopped);
  sends("a", control::Leave{"asked to stop", false});
  for (const char* name : {"b", "c"}) sends_stopped(name);
  EXPECT_EQ(phase(), Phase::WaitingForNodes);
  EXPECT_TRUE(core.may_exit());
}

}  // namespace
}  // namespace cpprun::test
