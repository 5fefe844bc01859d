// A coordinator that was elected through etcd (R18): what it writes before it is told, until when
// it grants, and how it goes on with a job that another has led.
#include <memory>

#include "common/limits/election.hpp"
#include "rendezvous/coordinator/times.hpp"
#include "tests/unit/rendezvous/coordinator/support_job.hpp"

namespace cpprun::test {
namespace {

using control::Standing;
using control::StopCause;

class MembershipMandate : public JobTest {
 public:
  // a's process is the coordinator's.
  MembershipMandate() {
    nodes(1, 3);
    is_elected("a", 7, std::nullopt);
  }
  // Another process; it knows what is written, and nothing else.
  void is_elected(const std::string& name, int64_t epoch, std::optional<control::JobFacts> facts) {
    for (auto& [of, p] : players) {
      p.session.reset();
      p.facts.world.reset();
      if (round_of(of) > RoundNumber()) p.facts.world = world(of);
      p.facts.epoch = Epoch(epoch - 1);
      p.heard.clear();
    }
    CoordinatorOptions options{
        name, Epoch(epoch), player(name).hello.node.incarnation, limits::kSayWaiting, {}};
    options.mandate = Mandate{run_id, std::move(facts), now + 1h};
    written.clear();
    std::destroy_at(&core);
    std::construct_at(&core, std::move(options));
  }
  void all_run() {
    for (const char* name : {"a", "b", "c"}) join(name);
    for (const char* name : {"a", "b", "c"}) says_started(name);
  }
  void comes_back(const std::string& name, Standing standing) {
    Player& p = player(name);
    returns(name, standing, p.facts.world ? p.facts.world->round.value : 0);
  }
  void the_host_is_silent() {
    all_run();
    is_elected("b", 8, written.back());
  }
};

// ---------------------------------------------------------------- what is written

TEST_F(MembershipMandate, R18_ARoundIsWrittenBeforeAnybodyHearsOfIt) {
  for (const char* name : {"a", "b"}) join(name);
  connects("c");
  says_hello("c");
  const SessionId session = *player("c").session;
  Effects effects;
  core.on_message(now, session, over_the_wire(control::AgentMessage(player("c").facts)), effects);
  bool is_written = false;
  int64_t worlds = 0;
  for (const Effect& effect : effects) {
    if (const auto* facts = std::get_if<WriteFacts>(&effect)) {
      is_written = true;
      EXPECT_EQ(facts->facts.epoch, Epoch(7));
      EXPECT_EQ(facts->facts.round, RoundNumber(1));
      EXPECT_EQ(facts->facts.group_size, 3);
      EXPECT_EQ(facts->facts.host_rank, 0);
      EXPECT_FALSE(facts->facts.decided);
    }
    const auto* send = std::get_if<Send>(&effect);
    if (send == nullptr || !std::holds_alternative<control::World>(send->message)) continue;
    EXPECT_TRUE(is_written) << "told before it was written";
    ++worlds;
  }
  EXPECT_EQ(worlds, 3);
}

TEST_F(MembershipMandate, R18_TheOutcomeIsWrittenBeforeItIsTold) {
  all_run();
  for (const char* name : {"a", "b"}) says_done(name);
  const size_t before = written.size();
  says_done("c");
  ASSERT_EQ(written.size(), before + 1);
  ASSERT_TRUE(written.back().decided);
  EXPECT_TRUE(written.back().decided->is_success);
}

TEST_F(MembershipMandate, R18_WhatWasChargedIsWrittenWithTheNextRound) {
  all_run();
  says_failed("c");
  for (const char* name : {"a", "b", "c"}) says_stopped(name);
  EXPECT_EQ(written.back().round, RoundNumber(2));
  EXPECT_EQ(written.back().restart_count, 1);
}

TEST_F(MembershipMandate, R18_WithoutAMandateNothingIsWritten) {
  std::destroy_at(&core);
  std::construct_at(&core,
                    CoordinatorOptions{"x", Epoch(7), std::nullopt, limits::kSayWaiting, {}});
  all_run();
  EXPECT_EQ(round_of("a"), RoundNumber(1));
  EXPECT_TRUE(written.empty());
}

// ---------------------------------------------------------------- grants

TEST_F(MembershipMandate, R18_NoGrantGoesBeyondTheMandate) {
  all_run();
  const auto grant = [&] {
    says("b", control::Ping{++player("b").seq});
    return heard<control::Pong>("b")->grant;
  };
  EXPECT_EQ(grant(), grant_of(terms.lease));
  core.lead_until(now + 1500ms);
  EXPECT_EQ(grant(), 1500ms);
  core.lead_until(now - 1s);
  EXPECT_EQ(grant(), 0s);
  core.lead_until(now + 1h);
  EXPECT_EQ(grant(), grant_of(terms.lease));
}

TEST_F(MembershipMandate, R18_PastTheMandateNothingMayGoOut) {
  core.lead_until(now + 1s);
  EXPECT_TRUE(core.is_in_charge(now));
  EXPECT_FALSE(core.is_in_charge(now + 1s));
}

TEST_F(MembershipMandate, R18_TheHostsOwnAgentIsFencedToo) {
  all_run();
  EXPECT_GT(heard<control::Welcome>("a")->heartbeat, 0s);
  player("a").is_silent = true;
  passes(limits::kLease);
  expect_stop("b", StopCause::NodeLost);
}

TEST_F(MembershipMandate, R18_ThereIsNoHeir) {
  player("b").facts.control_port = 4711;
  all_run();
  EXPECT_FALSE(world("c").heir);
}

TEST_F(MembershipMandate, R18_ItIsForOneJobOnly) {
  run_id = "other";
  join("x");
  expect_refused("x", "no other");
}

// ---------------------------------------------------------------- going on

TEST_F(MembershipMandate, R18_GoesOnAtOnceWhenAllButTheHostAreBack) {
  the_host_is_silent();
  comes_back("b", Standing::Stopped);
  comes_back("c", Standing::Stopped);
  EXPECT_EQ(phase(), Phase::Recovering);
  passes(limits::kHostMissed);
  expect_world("c", 2, 1, 4);
  EXPECT_EQ(world("c").epoch, Epoch(8));
  EXPECT_EQ(world("b").group_rank, 0) << "ranks stay in order";
}

TEST_F(MembershipMandate, R18_WithTheHostBackThereIsNothingToWaitFor) {
  the_host_is_silent();
  for (const char* name : {"c", "a", "b"}) comes_back(name, Standing::Stopped);
  expect_world("a", 2, 0, 6);
}

TEST_F(MembershipMandate, R18_WhoDoesNotComeIsWaitedForASecond) {
  the_host_is_silent();
  comes_back("b", Standing::Stopped);
  passes(limits::kHostMissed);
  EXPECT_EQ(phase(), Phase::Recovering);
  passes(limits::kLastCall - limits::kHostMissed);
  expect_world("b", 2, 0, 2);
}

TEST_F(MembershipMandate, R18_WorkersOfTheFormerCoordinatorNeverGoOn) {
  the_host_is_silent();
  for (const char* name : {"a", "b", "c"}) comes_back(name, Standing::Running);
  expect_stop("c", StopCause::NodeLost);
  for (const char* name : {"a", "b", "c"}) says(name, control::Stopped{RoundNumber(1), 40001});
  expect_world("c", 2, 2, 6);
}

TEST_F(MembershipMandate, R18_TheBudgetGoesOn) {
  all_run();
  says_failed("c");
  for (const char* name : {"a", "b", "c"}) says_stopped(name);
  is_elected("b", 8, written.back());
  for (const char* name : {"a", "b", "c"}) comes_back(name, Standing::Stopped);
  EXPECT_EQ(world("c").round, RoundNumber(3));
  EXPECT_EQ(world("c").restart_count, 1);
}

// Of all who were in the round nobody is left, and still its number is not given again.
TEST_F(MembershipMandate, R18_FactsAreEnough) {
  all_run();
  is_elected("x", 8, written.back());
  join("x");
  passes(limits::kLastCall * 3);
  EXPECT_EQ(world("x").round, RoundNumber(2));
}

// Its connection broke before anybody else had come.
TEST_F(MembershipMandate, R18_TheJobOutlivesItsLastNode) {
  all_run();
  is_elected("b", 8, written.back());
  join("x");
  dies("x");
  passes(limits::kLease * 2);
  join("y");
  passes(limits::kLastCall * 3);
  EXPECT_EQ(world("y").round, RoundNumber(2)) << "its number was given";
}

TEST_F(MembershipMandate, R18_AllWereDone) {
  all_run();
  is_elected("b", 8, written.back());
  for (const char* name : {"a", "b", "c"}) comes_back(name, Standing::Done);
  expect_decided("c", true);
}

TEST_F(MembershipMandate, R18_TheOutcomeThatWasWrittenIsToldToWhoTookPart) {
  all_run();
  for (const char* name : {"a", "b", "c"}) says_done(name);
  is_elected("b", 8, written.back());
  comes_back("b", Standing::Done);
  expect_decided("b", true);
  acks("b");
  EXPECT_TRUE(heard<control::Bye>("b"));
}

TEST_F(MembershipMandate, R18_ADecidedJobMayBeginAnew) {
  all_run();
  for (const char* name : {"a", "b", "c"}) says_done(name);
  is_elected("x", 8, written.back());
  for (const char* name : {"x", "y", "z"}) join(name);
  EXPECT_FALSE(heard<control::Decided>("x"));
  EXPECT_EQ(world("x").round, RoundNumber(1));
  EXPECT_EQ(world("x").restart_count, 0);
}

// Who led it was the last of three, and does not come back.
TEST_F(MembershipMandate, R18_AnOutcomeThatOnlySomeAreLeftForCanBeRead) {
  is_elected("c", 7, std::nullopt);
  all_run();
  control::JobFacts facts = written.back();
  EXPECT_EQ(facts.host_rank, 2);
  facts.restart_count = terms.max_restarts;
  player("a").facts.charged = control::Charge::Failure;
  is_elected("a", 8, facts);
  comes_back("a", Standing::Stopped);
  passes(limits::kLastCall);
  expect_decided("a", false);
  EXPECT_EQ(written.back().group_size, 3);
  EXPECT_TRUE(control::decode_facts(control::encode_facts(written.back())));
}

// The key was made anew by hand, say: what the agents bring is all there is (R13).
TEST_F(MembershipMandate, R18_WithoutFactsItIsAsAtARestartedEndpoint) {
  all_run();
  is_elected("b", 8, std::nullopt);
  for (const char* name : {"a", "b"}) comes_back(name, Standing::Stopped);
  passes(limits::kLastCall * 2);
  EXPECT_EQ(phase(), Phase::Recovering) << "workers of c may live";
  passes(limits::kLease);
  EXPECT_EQ(world("a").round, RoundNumber(2));
}

// ---------------------------------------------------------------- leaving

TEST_F(MembershipMandate, R18_AHostThatDrainsLeavesTheJobToWhomeverIsElected) {
  all_run();
  drains("a");
  EXPECT_FALSE(core.is_idle()) << "workers live";
  says("a", control::Leave{"asked to stop", false});
  for (const char* name : {"b", "c"}) says_stopped(name);
  EXPECT_TRUE(core.is_left_to_heir());
  EXPECT_TRUE(core.is_idle());
  EXPECT_EQ(round_of("b"), RoundNumber(1)) << "it forms nothing more";
}

}  // namespace
}  // namespace cpprun::test
