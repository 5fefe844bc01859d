// The agent's core with an elected coordinator (R18).
#include "tests/unit/agent/core/support_agent.hpp"

namespace cpprun::test {
namespace {

class AgentElection : public AgentTest {
 public:
  AgentElection() {
    agent::AgentOptions with = options();
    with.is_led_by_election = true;
    core = Core(with);
    call([&](agent::Effects& e) { core.start(now, e); });
  }
  void is_led_from(const Endpoint& place) {
    call([&](agent::Effects& e) { core.on_led_from(place, e); });
  }
  static inline const Endpoint kThere{"10.0.0.7", 4711};
};

TEST_F(AgentElection, R18_ConnectsToTheElectedLeader) {
  is_led_from(kHead);
  ASSERT_TRUE(routes);
  EXPECT_EQ(routes->places, std::vector<Endpoint>{kHead});
  EXPECT_TRUE(routes->is_sure);
  EXPECT_EQ(reconnects, 0);
}

TEST_F(AgentElection, R18_LeavesAnOlderLeaderAndIgnoresIt) {
  runs();
  is_led_from(kThere);
  EXPECT_EQ(routes->places, std::vector<Endpoint>{kThere});
  EXPECT_EQ(reconnects, 1);
  is_stopped(1);
  EXPECT_EQ(core.state(), State::Running) << "that is the new one's business";
}

TEST_F(AgentElection, R18_StaysWithTheSameLeader) {
  runs();
  is_led_from(kHead);
  EXPECT_EQ(reconnects, 0);
}

TEST_F(AgentElection, R18_ARoundNamesNoOtherEndpoints) {
  is_in_touch();
  is_led_from(kHead);
  routes.reset();
  gets_assignment(1);
  EXPECT_FALSE(routes);
}

TEST_F(AgentElection, R18_HasALeaderWhileItHasAWorkerLease) {
  EXPECT_FALSE(core.is_led(now));
  connects();
  EXPECT_FALSE(core.is_led(now)) << "the process that listens may lead no more";
  is_welcomed();
  EXPECT_FALSE(core.is_led(now));
  is_granted(4s);
  EXPECT_TRUE(core.is_led(now));
  EXPECT_TRUE(core.is_led(now + 2900ms));
  EXPECT_FALSE(core.is_led(now + 3s)) << "its worker lease is about to end";
  disconnects();
  EXPECT_FALSE(core.is_led(now));
}

TEST_F(AgentElection, R18_HasNoLeaderWithoutAWorkerLease) {
  connects();
  is_welcomed();
  is_granted(0s);
  EXPECT_FALSE(core.is_led(now));
  gets_assignment(1);
  EXPECT_EQ(core.state(), State::Starting);
  EXPECT_TRUE(started.empty());
}

TEST_F(AgentElection, R18_PingsSoonerAfterAShortWorkerLease) {
  connects();
  is_welcomed();
  is_granted(4s);
  EXPECT_EQ(core.next_deadline(), now + 1s) << "a heartbeat";
  passes(1s);
  is_granted(1500ms);
  EXPECT_TRUE(core.is_led(now));
  passes(1s);
  is_granted(2s);
  EXPECT_EQ(core.next_deadline(), now + 500ms) << "half of what is left until TERM";
  passes(500ms);
  is_granted(1500ms);
  EXPECT_EQ(core.next_deadline(), now + 250ms) << "TERM stays due a second before the end";
}

TEST_F(AgentElection, R18_IsNoCandidateWhileItLeaves) {
  EXPECT_TRUE(core.would_lead());
  runs();
  EXPECT_TRUE(core.would_lead());
  signal(15);
  EXPECT_FALSE(core.would_lead());
}

TEST_F(AgentElection, R18_IsNoCandidateOnceItKnowsTheOutcome) {
  runs();
  all_quiet();
  has_job_result(true);
  EXPECT_FALSE(core.would_lead());
}

}  // namespace
}  // namespace cpprun::test
