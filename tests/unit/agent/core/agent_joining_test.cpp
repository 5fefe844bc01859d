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
    hears(control::Refused{"a reason", control::Occupant{host, pid}});
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
  hears(control::Wait{"a reason", true, false, control::Standby{Incarnation(2), "10.0.0.7", 4711}});
  disconnects();
  passes(60s);
  EXPECT_FALSE(core.may_host(now));
}

TEST_F(Joining, ARedirectedAgentNeverHosts) {
  connects();
  hears(control::Redirect{Term(3), "10.0.0.7", 4711});
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
