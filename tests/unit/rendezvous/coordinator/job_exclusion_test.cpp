// --exclude-after, exclude and readmit, and node checks: which nodes a round has.
#include "common/limits/rendezvous.hpp"
#include "rendezvous/observe/status.hpp"
#include "tests/unit/rendezvous/coordinator/support_job.hpp"

namespace cpprun::test {
namespace {

using control::AdminCommand;
using control::AdminCommandKind;
using control::CheckState;
using control::StopCause;

class JobExclusionTest : public JobTest {
 public:
  JobExclusionTest() { job_spec.exclude_after = 1; }

  // A worker on `bad` fails, and the workers of all these nodes stop.
  void round_fails_on(const std::string& bad, const std::vector<std::string>& members,
                      bool is_fatal = false) {
    sends_failed(bad, 1, is_fatal);
    for (const std::string& member : members) sends_stopped(member);
  }
  void orders(const std::string& from, AdminCommandKind kind, const std::string& host) {
    AdminCommand command{++commands_, kind};
    command.node = host;
    command.reason = "ECC errors";
    sends(from, command);
  }
  void check_of(const std::string& name, CheckState state, const std::string& why = "") {
    sends(name, control::NodeCheck{state, why});
  }
  // A member of round 4 of two nodes, which another coordinator formed and which has stopped.
  // `knows_record`: that "b" is excluded.
  void returns_from_another_coordinator(const std::string& name, int64_t rank, bool knows_record) {
    control::RankAssignment former;
    former.term = Term(3);
    former.round = RoundNumber(4);
    former.group_size = 2;
    former.group_rank = rank;
    former.world_size = 4;
    former.max_restarts = 3;
    former.job_key = "key";
    control::HostRecord record;
    record.host = "b";
    record.exclusion = control::Exclusion::Policy;
    record.reason = "2 hangs";
    control::Register& facts = player(name).facts;
    facts.assignment = former;
    facts.term = Term(3);
    if (knows_record) facts.host_records = control::HostRecords{9, {record}};
    returns(name, control::ReportedPhase::Stopped, 4);
  }
  std::string why_waiting(const std::string& name) {
    const auto* wait = received<control::Wait>(name);
    return wait == nullptr ? "" : wait->why;
  }

 private:
  int64_t commands_ = 0;
};

TEST_F(JobExclusionTest, ASpareTakesThePlaceAndNoRestartIsCharged) {
  a_and_b_run();
  join("c");
  round_fails_on("b", {"a", "b"});
  expect_assignment("a", 2, 0, 4);
  expect_assignment("c", 2, 1, 4);
  EXPECT_EQ(assignment("a").restart_count, 0);
  EXPECT_EQ(job().budget().used(), 0);
  EXPECT_EQ(round_of("b"), RoundNumber(1));
  ASSERT_TRUE(received<control::Wait>("b"));
  EXPECT_TRUE(received<control::Wait>("b")->is_excluded);
  EXPECT_TRUE(has_note("host_excluded"));
  EXPECT_NE(status_json(core).find("\"excluded_by\": \"policy\""), std::string::npos);
  EXPECT_NE(status_json(core).find("\"state\": \"excluded\""), std::string::npos);
}

TEST_F(JobExclusionTest, FewerFaultsExcludeNobodyAndAreCharged) {
  job_spec.exclude_after = 2;
  a_and_b_run();
  join("c");
  round_fails_on("b", {"a", "b"});
  expect_assignment("b", 2, 1, 4);
  EXPECT_EQ(assignment("a").restart_count, 1);
  all({"a", "b"}, &JobTest::sends_started);
  round_fails_on("b", {"a", "b"});
  expect_assignment("c", 3, 1, 4);
  EXPECT_EQ(assignment("a").restart_count, 1) << "the second failure excludes the host";
}

TEST_F(JobExclusionTest, WithAUsedUpBudgetASpareStillTakesThePlace) {
  job_spec.max_restarts = 0;
  a_and_b_run();
  join("c");
  round_fails_on("a", {"a", "b"});
  expect_assignment("b", 2, 0, 4);
  expect_assignment("c", 2, 1, 4);
}

TEST_F(JobExclusionTest, WithAUsedUpBudgetAndNoSpareTheJobFails) {
  job_spec.max_restarts = 0;
  a_and_b_run();
  round_fails_on("a", {"a", "b"});
  expect_decided("b", false);
}

TEST_F(JobExclusionTest, WithoutASpareTheJobShrinks) {
  nodes(1, 2);
  a_and_b_run();
  round_fails_on("b", {"a", "b"});
  expect_assignment("a", 2, 0, 2);
}

TEST_F(JobExclusionTest, WithoutASpareTheJobWaitsAndReportsIt) {
  a_and_b_run();
  round_fails_on("b", {"a", "b"});
  EXPECT_EQ(phase(), Phase::WaitingForNodes);
  EXPECT_NE(why_waiting("a").find("excluded: b"), std::string::npos) << why_waiting("a");
  EXPECT_NE(why_waiting("b").find("b is excluded"), std::string::npos) << why_waiting("b");
  EXPECT_EQ(job().budget().used(), 1) << "no other node makes up for the failure";
  join("c");
  expect_assignment("c", 2, 1, 4);
}

TEST_F(JobExclusionTest, ANewAgentOfAnExcludedHostIsLeftOutToo) {
  nodes(1, 2);
  a_and_b_run();
  round_fails_on("b", {"a", "b"});
  player("b again").hello.node.name = "b";
  join("b again");
  passes(limits::kScaleUpInterval + 1s);
  expect_no_assignment("b again");
}

TEST_F(JobExclusionTest, AProgramThatCannotStartOnOneNodeDoesNotEndTheJob) {
  a_and_b_run();
  join("c");
  round_fails_on("b", {"a", "b"}, true);
  expect_assignment("a", 2, 0, 4);
  expect_assignment("c", 2, 1, 4);
  EXPECT_EQ(job().budget().used(), 0);
}

TEST_F(JobExclusionTest, AProgramThatCannotStartAnywhereEndsTheJob) {
  a_and_b_run();
  join("c");
  round_fails_on("b", {"a", "b"}, true);
  round_fails_on("c", {"a", "c"}, true);
  expect_decided("a", false);
  EXPECT_NE(received<control::JobResult>("a")->failure_summary.find("could not be started on c"),
            std::string::npos);
}

TEST_F(JobExclusionTest, WithoutThePolicyAFatalStartEndsTheJob) {
  job_spec.exclude_after = 0;
  a_and_b_run();
  join("c");
  round_fails_on("b", {"a", "b"}, true);
  expect_decided("a", false);
}

TEST_F(JobExclusionTest, ALostNodeCounts) {
  nodes(1, 3);
  a_and_b_run();
  dies("b");
  sends_stopped("a");
  passes(limits::kDeathGrace);
  EXPECT_EQ(job().hosts().find("b")->losses, 1);
  EXPECT_TRUE(job().hosts().is_excluded("b"));
}

TEST_F(JobExclusionTest, ANodeThatLeavesInOrderDoesNot) {
  nodes(1, 2);
  a_and_b_run();
  drains("b");
  leaves_saved("b");
  sends_saved("a");
  EXPECT_EQ(job().hosts().find("b"), nullptr);
}

TEST_F(JobExclusionTest, AnOperatorExcludesARunningNode) {
  job_spec.exclude_after = 0;
  a_and_b_run();
  join("c");
  orders("a", AdminCommandKind::Exclude, "b");
  expect_stop("a", StopCause::Exclusion);
  sends_saved("a");
  sends_saved("b");
  expect_assignment("c", 2, 1, 4);
  EXPECT_EQ(assignment("a").restart_count, 0);
  EXPECT_NE(job().hosts().find("b")->reason.find("ECC errors"), std::string::npos);
}

TEST_F(JobExclusionTest, AReadmittedNodeGrowsTheJob) {
  nodes(1, 2);
  a_and_b_run();
  orders("a", AdminCommandKind::Exclude, "b");
  all({"a", "b"}, &JobTest::sends_saved);
  expect_assignment("a", 2, 0, 2);
  sends_started("a");
  orders("a", AdminCommandKind::Readmit, "b");
  passes(limits::kScaleUpInterval);
  sends_stopped("a");
  expect_assignment("b", 3, 1, 4);
}

TEST_F(JobExclusionTest, CommandsForUnknownHostsAreRefused) {
  a_and_b_run();
  orders("a", AdminCommandKind::Exclude, "nobody");
  EXPECT_FALSE(received<control::AdminReply>("a")->is_done);
  orders("a", AdminCommandKind::Readmit, "b");
  EXPECT_FALSE(received<control::AdminReply>("a")->is_done);
}

TEST_F(JobExclusionTest, AnExcludedStandbyIsNotWaitedFor) {
  nodes(1, 3);
  player("a").hello.node.incarnation = kEmbedded;
  for (const char* name : {"a", "b", "c"}) player(name).facts.control_port = 4000;
  for (const char* name : {"a", "b", "c"}) join(name);
  const std::string standby =
      assignment("a").standby->node == player("b").hello.node.incarnation ? "b" : "c";
  round_fails_on(standby, {"a", "b", "c"});
  expect_assignment("a", 2, 0, 4);
}

TEST_F(JobExclusionTest, MembersKeepTheRecordsForTheNextCoordinator) {
  a_and_b_run();
  join("c");
  round_fails_on("b", {"a", "b"});
  ASSERT_TRUE(received<control::HostRecords>("a"));
  ASSERT_TRUE(received<control::HostRecords>("c"));
  EXPECT_EQ(received<control::HostRecords>("c")->hosts.front().host, "b");
  join("d");
  EXPECT_FALSE(received<control::HostRecords>("d")) << "it was in no round";
}

TEST_F(JobExclusionTest, TheNextCoordinatorContinuesWithThem) {
  returns_from_another_coordinator("a", 0, true);
  returns_from_another_coordinator("b", 1, true);
  passes(limits::kNodeLease + 1s);
  EXPECT_TRUE(job().hosts().is_excluded("b"));
  EXPECT_EQ(round_of("b"), RoundNumber());
}

// The host reconnected first, to a coordinator that did not know of its exclusion.
TEST_F(JobExclusionTest, ARecordThatComesWithTheLastMissingNodeCountsForTheNextRound) {
  returns_from_another_coordinator("b", 1, false);
  passes(limits::kNodeLease + 1s);
  returns_from_another_coordinator("a", 0, true);
  EXPECT_TRUE(job().hosts().is_excluded("b"));
  EXPECT_EQ(round_of("b"), RoundNumber());
}

TEST_F(JobExclusionTest, ARecordOfANodeThatWasInNoRoundIsNotBelieved) {
  control::HostRecord record;
  record.host = "a";
  record.exclusion = control::Exclusion::Operator;
  player("b").facts.host_records = control::HostRecords{9, {record}};
  a_and_b_run();
  expect_assignment("a", 1, 0, 4);
}

TEST_F(JobExclusionTest, NoNodeIsPlacedBeforeItsCheckHasPassed) {
  player("b").facts.node_check.state = CheckState::Pending;
  join("a");
  join("b");
  expect_no_assignment("a");
  check_of("b", CheckState::Passed);
  expect_assignment("a", 1, 0, 4);
}

TEST_F(JobExclusionTest, ANodeWhoseCheckFailsIsReplacedByASpare) {
  job_spec.exclude_after = 5;
  a_and_b_run();
  join("c");
  sends_failed("a");
  sends_stopped("a");
  control::Stopped stopped{round_of("b"), 40002};
  stopped.node_check = {CheckState::Failed, "GPU 3 has fallen off the bus"};
  sends("b", stopped);
  expect_assignment("c", 2, 1, 4);
  EXPECT_EQ(job().hosts().find("b")->failed_checks, 1);
  EXPECT_NE(why_waiting("b").find("GPU 3"), std::string::npos);
  check_of("b", CheckState::Failed, "GPU 3 has fallen off the bus");
  EXPECT_EQ(job().hosts().find("b")->failed_checks, 1) << "the same finding counts once";
  check_of("b", CheckState::Passed);
  sends_started("a");
  dies("c");
  passes(limits::kDeathGrace);
  sends_stopped("a");
  expect_assignment("b", 3, 1, 4);
}

}  // namespace
}  // namespace cpprun::test
