// A full job, and agents without a run id.
#include <memory>

#include "tests/unit/rendezvous/coordinator/support_job.hpp"

namespace cpprun::test {
namespace {

class FullJob : public JobTest {
 public:
  void comes_without_a_run_id(const std::string& name) {
    player(name).facts.has_default_run_id = true;
    join(name);
  }
  void expect_spare(const std::string& name) {
    const auto* wait = received<control::Wait>(name);
    ASSERT_TRUE(wait) << name;
    EXPECT_TRUE(wait->is_spare) << wait->why;
    EXPECT_EQ(received<control::Refused>(name), nullptr) << name;
  }
};

TEST_F(FullJob, RejectsAnAgentWithoutARunIdOnceAllMembersArePresent) {
  player("a").facts.pid = 4711;
  a_and_b_run();
  comes_without_a_run_id("c");
  expect_spare("c");
  passes(limits::kHeartbeat);
  expect_refused("c", "--rdzv-id");
  const auto* refused = received<control::Refused>("c");
  ASSERT_TRUE(refused->occupant);
  EXPECT_EQ(refused->occupant->host, "a");
  EXPECT_EQ(refused->occupant->pid, 4711);
  passes(60s);
  EXPECT_EQ(phase(), Phase::Running);
  EXPECT_EQ(received<control::Stop>("a"), nullptr);
}

TEST_F(FullJob, RejectsImmediatelyWhenTheLocalAgentIsTheWholeJob) {
  nodes(1, 1);
  player("a").hello.node.incarnation = kEmbedded;
  join("a");
  comes_without_a_run_id("c");
  expect_refused("c", "--rdzv-id");
  EXPECT_EQ(received<control::Wait>("c"), nullptr);
}

TEST_F(FullJob, AnAgentWithTheRunIdWaitsAsASpare) {
  a_and_b_run();
  join("c");
  passes(600s);
  expect_spare("c");
}

TEST_F(FullJob, AcceptsAReplacementOfASilentMember) {
  a_and_b_run();
  player("b").is_silent = true;
  comes_without_a_run_id("c");
  passes(limits::kNodeLease - 1ms);
  expect_spare("c");
  passes(1s);
  expect_stop("a", control::StopCause::NodeLost);
  sends_stopped("a");
  expect_assignment("c", 2, 1, 4);
}

TEST_F(FullJob, AcceptsAReplacementOfADisconnectedMember) {
  a_and_b_run();
  is_cut_off("b");
  comes_without_a_run_id("c");
  passes(limits::kNodeLease);
  sends_stopped("a");
  expect_assignment("c", 2, 1, 4);
}

TEST_F(FullJob, AcceptsAReplacementOfADeadMember) {
  a_and_b_run();
  dies("b");
  comes_without_a_run_id("c");
  sends_stopped("a");
  passes(limits::kDeathGrace);
  expect_assignment("c", 2, 1, 4);
}

TEST_F(FullJob, AJobThatMayGrowAcceptsTheAgent) {
  nodes(1, 3);
  a_and_b_run();
  comes_without_a_run_id("c");
  expect_stop("a", control::StopCause::Growth);
  all({"a", "b"}, &JobTest::sends_stopped);
  expect_assignment("c", 2, 2, 6);
}

TEST_F(FullJob, AFormerMemberStaysAsASpare) {
  nodes(1, 2);
  player("b").facts.has_default_run_id = true;
  a_and_b_run();
  sends("a", control::AdminCommand{1, control::AdminCommandKind::Scale, false, "", 1});
  all({"a", "b"}, &JobTest::sends_stopped);
  expect_assignment("a", 2, 0, 2);
  passes(60s);
  expect_spare("b");
}

TEST_F(FullJob, ARoundThatFormsWithoutTheAgentRejectsIt) {
  a_and_b_run();
  sends_failed("a");
  comes_without_a_run_id("z");
  EXPECT_EQ(received<control::Refused>("z"), nullptr)
      << "a round is stopping: there may be a place";
  all({"a", "b"}, &JobTest::sends_stopped);
  expect_assignment("b", 2, 1, 4);
  passes(limits::kHeartbeat);
  expect_refused("z", "--rdzv-id");
  EXPECT_EQ(phase(), Phase::Running);
}

TEST_F(FullJob, TheHostsAgentPrecedesAllOthersInAJobOfOneNode) {
  nodes(1, 1);
  CoordinatorOptions options;
  options.term = Term(1);
  options.embedded = kEmbedded;
  options.own_job = run_id;
  std::destroy_at(&core);
  std::construct_at(&core, std::move(options));
  join("b");
  EXPECT_FALSE(player("b").session) << "it is too early";
  player("a").hello.node.incarnation = kEmbedded;
  join("a");
  expect_assignment("a", 1, 0, 2);
  join("b");
  expect_spare("b");
}

TEST_F(FullJob, AtADerivedPortTheCoordinatorLeadsOneJobAlone) {
  CoordinatorOptions options;
  options.term = Term(1);
  options.embedded = kEmbedded;
  options.own_job = run_id;
  options.leads_own_job_alone = true;
  std::destroy_at(&core);
  std::construct_at(&core, std::move(options));
  player("z").hello.run_id = "another job";
  join("z");
  const auto* refused = received<control::Refused>("z");
  ASSERT_NE(refused, nullptr);
  EXPECT_TRUE(refused->is_other_job);
  EXPECT_EQ(notes.back().level, LogEvent::Level::Info) << "such agents come all the time";
}

}  // namespace
}  // namespace cpprun::test
