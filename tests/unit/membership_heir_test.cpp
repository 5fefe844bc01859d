// Who leads a job when the agent that hosts its coordinator has died (R14 to R17).
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>

#include "rendezvous/core/status.hpp"
#include "tests/unit/support_job.hpp"

namespace cpprun::test {
namespace {

using control::Standing;
using control::StopCause;

class MembershipHeir : public JobTest {
 public:
  // a hosts the coordinator, b is the heir, c another node.
  MembershipHeir() {
    nodes(1, 3);
    for (const char* name : {"a", "b", "c"}) {
      player(name).facts.control_port = 4700 + id_of(name);
    }
    is_led_by("a", 7, "");
  }
  int64_t id_of(const std::string& name) {
    return static_cast<int64_t>(player(name).hello.node.incarnation.value);
  }
  // Another process; it knows nothing.
  void is_led_by(const std::string& name, int64_t epoch, const std::string& heir_of) {
    for (auto& [of, p] : players) {
      p.session.reset();
      p.facts.world.reset();
      if (round_of(of) > RoundNumber()) p.facts.world = world(of);
      p.facts.epoch = world(of).epoch;
      p.heard.clear();
    }
    CoordinatorOptions options{
        name, Epoch(epoch), player(name).hello.node.incarnation, limits::kSayWaiting, {}};
    options.heir_of = heir_of;
    std::destroy_at(&core);
    std::construct_at(&core, std::move(options));
  }
  void all_run() {
    for (const char* name : {"a", "b", "c"}) join(name);
    for (const char* name : {"a", "b", "c"}) says_started(name);
  }
  void comes_back(const std::string& name, Standing standing, bool has_evidence = true) {
    Player& p = player(name);
    p.facts.has_grant = standing == Standing::Running;
    p.facts.has_evidence = has_evidence;
    returns(name, standing, p.facts.world ? p.facts.world->round.value : 0);
  }
};

// It receives no world of a round that stops, so only the wait can name the heir.
TEST_F(MembershipHeir, AMemberThatMissedItsWorldLearnsTheHeir) {
  for (const char* name : {"a", "b", "c"}) join(name);
  forget("c");
  is_cut_off("c");
  says_failed("a");
  returns("c", Standing::Idle, 0);
  const auto* wait = heard<control::Wait>("c");
  ASSERT_TRUE(wait);
  ASSERT_TRUE(wait->heir);
  EXPECT_EQ(wait->heir->node, player("b").hello.node.incarnation);
}

TEST_F(MembershipHeir, TheStatusSaysWhoLeadsAndWhoWould) {
  all_run();
  const auto status = nlohmann::json::parse(status_json(core));
  std::map<int64_t, std::pair<bool, bool>> by_rank;
  for (const auto& node : status["jobs"].begin().value()["nodes"]) {
    by_rank[node["group_rank"]] = {node["is_host"], node["is_heir"]};
  }
  const std::map<int64_t, std::pair<bool, bool>> expected{
      {0, {true, false}}, {1, {false, true}}, {2, {false, false}}};
  EXPECT_EQ(by_rank, expected);
}

TEST_F(MembershipHeir, R14_ASpareIsToldWhoTheHeirIs) {
  all_run();
  join("d");
  const auto* told = heard<control::Wait>("d");
  ASSERT_NE(told, nullptr);
  ASSERT_TRUE(told->heir);
  EXPECT_TRUE(told->heir->node == heard<control::World>("a")->heir->node);
}

TEST_F(MembershipHeir, R14_TheFirstMemberBesideTheHostIsNamed) {
  all_run();
  for (const char* name : {"a", "b", "c"}) {
    ASSERT_TRUE(world(name).heir) << name;
    EXPECT_EQ(world(name).heir->node, player("b").hello.node.incarnation);
    EXPECT_EQ(world(name).heir->port, 4700 + id_of("b"));
    EXPECT_EQ(world(name).host_rank, 0);
  }
}

TEST_F(MembershipHeir, R14_ACoordinatorOfItsOwnProcessHasNone) {
  std::destroy_at(&core);
  std::construct_at(&core,
                    CoordinatorOptions{"x", Epoch(7), std::nullopt, limits::kSayWaiting, {}});
  all_run();
  EXPECT_FALSE(world("a").heir);
}

TEST_F(MembershipHeir, R14_ADeadHeirIsFollowedByAnother) {
  all_run();
  dies("b");
  passes(limits::kDeathGrace);
  for (const char* name : {"a", "c"}) says_stopped(name);
  ASSERT_TRUE(world("c").heir);
  EXPECT_EQ(world("c").heir->node, player("c").hello.node.incarnation);
}

TEST_F(MembershipHeir, R14_AnHeirLostInSilenceIsTheLast) {
  all_run();
  player("b").is_silent = true;
  passes(limits::kLease);
  for (const char* name : {"a", "c"}) says_stopped(name);
  EXPECT_EQ(world("c").round, RoundNumber(2));
  EXPECT_FALSE(world("c").heir);
}

// The next world names none, and does not reach it if it is a spare then: it would take over.
TEST_F(MembershipHeir, R14_ALostHeirThatIsBackBeforeTheNextRoundIsNone) {
  all_run();
  EXPECT_EQ(world("c").heir->node, player("b").hello.node.incarnation);
  player("b").is_silent = true;
  passes(limits::kLease);
  player("b").is_silent = false;
  returns("b", Standing::Stopped, 1);
  EXPECT_FALSE(heard<control::Welcome>("b")->is_heir);
  for (const char* name : {"a", "c"}) says_stopped(name);
  EXPECT_EQ(world("c").round, RoundNumber(2));
  EXPECT_FALSE(world("c").heir);
}

// One of a round before may live, and believe what it was told.
TEST_F(MembershipHeir, R14_WhoGoesOnWithARoundWithoutAnHeirNamesNone) {
  all_run();
  player("b").is_silent = true;
  passes(limits::kLease);
  for (const char* name : {"a", "c"}) says_stopped(name);
  is_led_by("a", 9, "");
  for (const char* name : {"a", "c"}) comes_back(name, Standing::Stopped);
  passes(limits::kLease);
  EXPECT_EQ(world("c").round, RoundNumber(3));
  EXPECT_FALSE(world("c").heir);
}

// It is connected, and believes what it was told.
TEST_F(MembershipHeir, R14_TheHeirStaysWhenARoundHasNoPlaceForIt) {
  all_run();
  control::Order order;
  order.kind = control::OrderKind::Scale;
  order.nodes = 1;
  says("a", order);
  for (const char* name : {"a", "b", "c"}) says_stopped(name);
  EXPECT_EQ(world("a").round, RoundNumber(2));
  EXPECT_EQ(world("b").round, RoundNumber(1));
  ASSERT_TRUE(world("a").heir);
  EXPECT_EQ(world("a").heir->node, player("b").hello.node.incarnation);
}

TEST_F(MembershipHeir, R14_NoRoundFormsWhileTheHeirIsCutOff) {
  all_run();
  says_failed("c");
  for (const char* name : {"a", "b"}) says_stopped(name);
  is_cut_off("b");
  says_stopped("c");
  EXPECT_EQ(world("c").round, RoundNumber(1));
  passes(limits::kLease);
  EXPECT_EQ(world("c").round, RoundNumber(2));
}

// It must not take the coordinator's leaving for its death.
TEST_F(MembershipHeir, R14_TheEndWaitsForAnHeirThatIsCutOff) {
  all_run();
  says_done("b");
  is_cut_off("b");
  for (const char* name : {"a", "c"}) says_done(name);
  for (const char* name : {"a", "c"}) acks(name);
  EXPECT_FALSE(heard<control::Bye>("c"));
  passes(limits::kLease);
  EXPECT_TRUE(heard<control::Bye>("c"));
}

TEST_F(MembershipHeir, R16_TheHeirGoesOnAsSoonAsTheRestIsBack) {
  all_run();
  is_led_by("b", 8, run_id);
  comes_back("b", Standing::Running);
  comes_back("c", Standing::Running);
  EXPECT_EQ(phase(), Phase::Recovering) << "the host's workers may live for a moment";
  passes(limits::kDeathGrace * 2);
  expect_stop("c", StopCause::NodeLost);
  for (const char* name : {"b", "c"}) says(name, control::Stopped{RoundNumber(1), 40001});
  expect_world("c", 2, 1, 4);
  EXPECT_EQ(world("c").epoch, Epoch(8));
  EXPECT_TRUE(world("c").is_moved);
  EXPECT_EQ(world("c").heir->node, player("c").hello.node.incarnation);
}

TEST_F(MembershipHeir, R17_WithoutItsHeirNobodyGoesOnAtTheEndpoint) {
  all_run();
  is_led_by("a", 9, "");
  comes_back("c", Standing::Running);
  passes(limits::kLease * 3);
  EXPECT_EQ(phase(), Phase::Recovering);
  comes_back("b", Standing::Stopped);
  EXPECT_NE(phase(), Phase::Recovering) << "it leads nothing";
}

TEST_F(MembershipHeir, R17_WhatAnHeirHasFormedIsLeftToItUnlessItIsDead) {
  all_run();
  is_led_by("b", 8, run_id);
  comes_back("b", Standing::Running);
  comes_back("c", Standing::Running);
  passes(limits::kDeathGrace * 2);
  for (const char* name : {"b", "c"}) says(name, control::Stopped{RoundNumber(1), 40001});
  is_led_by("a", 9, "");
  comes_back("c", Standing::Stopped, false);
  passes(limits::kLease * 3);
  EXPECT_EQ(phase(), Phase::Recovering) << "its coordinator may live";
  comes_back("c", Standing::Stopped, true);
  passes(limits::kLease - 1ms);
  EXPECT_EQ(phase(), Phase::Recovering) << "it may have died a moment ago, and granted till then";
  passes(1ms);
  EXPECT_NE(phase(), Phase::Recovering);
}

// One that has no workers does not ping before it is welcomed.
TEST_F(MembershipHeir, R17_WhoWaitsForAnHeirIsNotLost) {
  all_run();
  is_led_by("a", 9, "");
  comes_back("c", Standing::Idle);
  player("c").is_silent = true;
  passes(limits::kLease * 3);
  EXPECT_TRUE(player("c").session);
  player("c").is_silent = false;
  comes_back("b", Standing::Stopped);
  EXPECT_TRUE(heard<control::Welcome>("c"));
  player("c").is_silent = true;
  passes(limits::kLease);
  EXPECT_EQ(job().nodes().count(player("c").hello.node.incarnation), 0U) << "its lease had begun";
}

TEST_F(MembershipHeir, R17_WhoHasGrantedNothingHandsOver) {
  all_run();
  is_led_by("a", 9, "");
  comes_back("c", Standing::Running);
  connects("b");
  says_hello("b");
  says("b", control::Acting{Epoch(8), "10.0.0.2", 4702});
  ASSERT_TRUE(heard<control::Moved>("c"));
  EXPECT_EQ(heard<control::Moved>("c")->port, 4702);
  join("d");
  EXPECT_TRUE(heard<control::Moved>("d")) << "who comes later is told too";
}

TEST_F(MembershipHeir, R15_AHostThatIsAskedToStopLeavesTheJobToTheHeir) {
  all_run();
  drains("a");
  says("a", control::Leave{"asked to stop", false});
  for (const char* name : {"b", "c"}) says_stopped(name);
  EXPECT_EQ(phase(), Phase::Gathering);
  EXPECT_TRUE(core.is_left_to_heir());
}

TEST_F(MembershipHeir, R15_AHostThatIsUnusableLeavesTheJobToTheHeir) {
  all_run();
  is_unusable("a");
  for (const char* name : {"b", "c"}) says_stopped(name);
  EXPECT_EQ(phase(), Phase::Gathering);
  EXPECT_TRUE(core.is_left_to_heir());
}

// The signal came while it was cut off from its own coordinator.
TEST_F(MembershipHeir, R15_AHostThatComesBackDrainingLeavesTheJobToTheHeirToo) {
  all_run();
  says_failed("c");
  is_cut_off("a");
  player("a").facts.is_draining = true;
  comes_back("a", Standing::Stopped);
  says("a", control::Leave{"asked to stop", false});
  for (const char* name : {"b", "c"}) says_stopped(name);
  EXPECT_EQ(phase(), Phase::Gathering);
  EXPECT_TRUE(core.is_left_to_heir());
}

}  // namespace
}  // namespace cpprun::test
