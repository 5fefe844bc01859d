// The agent's core before its first round: rejected, a spare, or the host of the coordinator.
#include "tests/unit/agent/core/support_agent.hpp"

namespace cpprun::test {
namespace {

class Joining : public AgentTest {
 public:
  Joining() {
    agent::AgentOptions with = options();
    with.endpoint = "localhost:29497";
    core = Core(with);
    call([&](agent::Effects& e) { core.start(now, e); });
  }
  void is_refused_by(const std::string& host, int64_t pid) {
    connects();
    receives(control::Refused{"a reason", control::Occupant{host, pid}});
    expect_finish(How::Error);
  }
};

TEST_F(Joining, NamesTheHostOfAFullJob) {
  is_refused_by("node0", 4711);
  EXPECT_EQ(finish->text,
            "job 'job' already runs at localhost:29497 (pid 4711); give --rdzv-id=NAME to run "
            "another job there");
}

TEST_F(Joining, NamesTheOtherHostOfAFullJob) {
  is_refused_by("node\x1b[1m7", 4711);
  EXPECT_NE(finish->text.find("(pid 4711 on node"), std::string::npos) << finish->text;
  EXPECT_EQ(finish->text.find('\x1b'), std::string::npos);
}

TEST_F(Joining, RefusesRanksThatCannotBeRight) {
  using Change = void (*)(control::RankAssignment&);
  const Change wrong[] = {
      [](auto& a) { a.group_rank = -1; },        [](auto& a) { a.group_rank = 1; },
      [](auto& a) { a.group_size = 0; },         [](auto& a) { a.group_size = INT64_MAX; },
      [](auto& a) { a.base_rank = -1; },         [](auto& a) { a.base_rank = 1; },
      [](auto& a) { a.base_rank = INT64_MAX; },  [](auto& a) { a.world_size = 1; },
      [](auto& a) { a.world_size = INT64_MAX; }, [](auto& a) { a.base_role_rank = -1; },
      [](auto& a) { a.role_world_size = 0; },    [](auto& a) { a.master_port = 65536; },
      [](auto& a) { a.store_port = -1; },        [](auto& a) { a.restart_count = -1; },
  };
  for (const Change change : wrong) {
    core = Core(options());
    call([&](agent::Effects& e) { core.start(now, e); });
    finish.reset();
    started.clear();
    is_in_touch();
    control::RankAssignment assignment = assignment_of(1);
    change(assignment);
    receives(assignment);
    expect_finish(How::Error);
    EXPECT_NE(finish->text.find("ranks or ports that cannot be right"), std::string::npos);
    EXPECT_TRUE(started.empty());
    EXPECT_TRUE(newest_sent<control::Leave>());
  }
}

TEST_F(Joining, ShowsNoControlCharactersOfTheCoordinator) {
  connects();
  receives(control::Refused{"a \x1b[2J\x07 \xE2\x80\xAE reason"});
  expect_finish(How::Error);
  EXPECT_NE(finish->text.find("a ?[2J? ? reason"), std::string::npos) << finish->text;
}

TEST_F(Joining, AnAgentThatKnowsTheOutcomeNeedsNoCoordinatorToEnd) {
  runs();
  has_job_result(true);
  disconnects();
  connects();
  receives(control::Refused{"a reason"});
  all_quiet();
  expect_finish(How::Success);
}

TEST_F(Joining, ASpareIsReportedOnce) {
  is_in_touch();
  waits(true);
  waits(true);
  EXPECT_EQ(warnings, 1);
}

TEST_F(Joining, ASpareEndsWithTheJobAndRanNothing) {
  is_in_touch();
  waits(true);
  has_job_result(true);
  bye();
  expect_finish(How::Success);
  EXPECT_TRUE(finish->ran_no_worker);
}

TEST_F(Joining, AMemberRanSomething) {
  runs();
  all_quiet();
  has_job_result(true);
  bye();
  expect_finish(How::Success);
  EXPECT_FALSE(finish->ran_no_worker);
}

TEST_F(Joining, AnUnregisteredAgentMayHost) {
  EXPECT_TRUE(core.may_host(now));
  connects();  // to a peer that disconnects
  EXPECT_FALSE(core.may_host(now));
  disconnects();
  EXPECT_TRUE(core.may_host(now));
}

TEST_F(Joining, ARegisteredAgentMayHostAfterAllWorkerLeasesEnded) {
  is_in_touch();
  waits(true);
  disconnects();
  passes(5s - 1ms);
  EXPECT_FALSE(core.may_host(now));
  passes(1ms);
  EXPECT_TRUE(core.may_host(now));
}

TEST_F(Joining, AnAgentThatKnowsAStandbyNeverHosts) {
  is_in_touch();
  receives(
      control::Wait{"a reason", true, false, control::Standby{Incarnation(2), "10.0.0.7", 4711}});
  disconnects();
  passes(60s);
  EXPECT_FALSE(core.may_host(now));
}

TEST_F(Joining, ARedirectedAgentNeverHosts) {
  connects();
  receives(control::Redirect{Term(3), "10.0.0.7", 4711});
  disconnects();
  EXPECT_FALSE(core.may_host(now));
}

TEST_F(Joining, AnAgentThatWasInARoundNeverHosts) {
  runs();
  disconnects();
  passes(60s);
  EXPECT_FALSE(core.may_host(now));
}

}  // namespace
}  // namespace cpprun::test
