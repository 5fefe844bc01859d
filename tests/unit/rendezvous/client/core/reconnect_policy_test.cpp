// Decisions about an agent's connection to its coordinator: back-off, unexpected peers, frames, log
// messages.
#include "rendezvous/client/core/reconnect_policy.hpp"
#include "common/limits/rendezvous.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>

#include "tests/unit/rendezvous/client/core/support_wire.hpp"

namespace cpprun::test {
namespace {

using namespace std::chrono_literals;

class ReconnectPolicyTest : public testing::Test {
 protected:
  using Effects = ReconnectPolicy::Effects;

  void starts() {
    call([&](Effects& e) { core.start(e); });
  }
  void has_further_ports() {
    ReconnectPolicy::Options options{kHead, false, 60s};
    options.further_ports = {29501, 29502};
    std::destroy_at(&core);
    std::construct_at(&core, std::move(options));
  }
  void dial_fails() {
    call([&](Effects& e) {
      core.on_connect_failed(now, "10.0.0.1: Connection refused", {kRefused}, e);
    });
  }
  void connects() { core.on_connected(now); }
  void breaks() {
    call([&](Effects& e) { core.on_broken(now, e); });
  }
  void is_probed(bool is_torch_store, const std::string& owner = "") {
    call([&](Effects& e) { core.on_probed(now, is_torch_store, owner, e); });
  }
  void receives(std::span<const uint8_t> bytes) {
    core.on_bytes(bytes);
    while (auto message = next()) received.push_back(*message);
  }
  void receives(const control::CoordinatorMessage& message) {
    receives(to_frame(control::encode(message)));
  }
  std::optional<control::CoordinatorMessage> next() {
    std::optional<control::CoordinatorMessage> found;
    call([&](Effects& e) { found = core.next_message(now, e); });
    return found;
  }
  // Advances time to the next deadline and runs it.
  Duration next_act() {
    Duration waited = core.next_deadline() - now;
    now = core.next_deadline();
    call([&](Effects& e) { core.on_time(now, e); });
    return waited;
  }
  template <class T>
  int64_t times() const {
    return count_of<T>(done);
  }

  template <class Call>
  void call(Call what) {
    Effects effects;
    what(effects);
    done.insert(done.end(), effects.begin(), effects.end());
  }

  Instant now = Instant::from_nanoseconds(1'000'000'000'000);
  static inline const Endpoint kHead{"head", 29500};
  static inline const Endpoint kRefused{"10.0.0.1", 29500};
  ReconnectPolicy core{{kHead, false, 60s}};
  std::vector<ReconnectPolicy::Effect> done;
  std::vector<control::CoordinatorMessage> received;
};

using ReconnectPolicyRules = ReconnectPolicyTest;

TEST_F(ReconnectPolicyRules, BacksOffUpToASecondAndResetsAfterRegistration) {
  starts();
  EXPECT_EQ(times<ReconnectPolicy::Connect>(), 1);
  for (Duration expected : {50ms, 100ms, 200ms, 400ms, 800ms, 1000ms, 1000ms}) {
    dial_fails();
    EXPECT_EQ(next_act(), expected);
  }
  EXPECT_EQ(times<ReconnectPolicy::Connect>(), 8);
  connects();
  receives(control::Bye{});
  breaks();
  EXPECT_EQ(next_act(), Duration(50ms));
}

TEST_F(ReconnectPolicyRules, APeerWithoutAnAnswerIsNoCoordinator) {
  starts();
  connects();
  EXPECT_EQ(next_act(), limits::kHelloTimeout);
  EXPECT_EQ(times<ReconnectPolicy::ResetConnection>(), 1);
  EXPECT_EQ(times<ReconnectPolicy::Broken>(), 1);
  EXPECT_EQ(times<ReconnectPolicy::Probe>(), 1);
  EXPECT_EQ(core.trouble(),
            "connected, but no coordinator answers: another program may listen there; end it, or "
            "give another port");
  is_probed(true);
  EXPECT_NE(core.trouble().find("torch's TCPStore"), std::string::npos);
  EXPECT_EQ(times<ReconnectPolicy::Trouble>(), 1);
}

TEST_F(ReconnectPolicyRules, TheProcessThatHoldsThePortIsNamed) {
  const std::string text =
      "connected, but what listens there hangs up (pid 7 (nc)); end it, or give another port";
  starts();
  connects();
  breaks();
  is_probed(false, "pid 7 (nc)");
  EXPECT_EQ(core.trouble(), text);
  connects();
  breaks();
  EXPECT_EQ(core.trouble(), text) << "also while it is probed again";
}

TEST_F(ReconnectPolicyRules, SendsOneProbeAtATime) {
  starts();
  connects();
  breaks();
  connects();
  breaks();
  EXPECT_EQ(times<ReconnectPolicy::Probe>(), 1);
  is_probed(false);
  connects();
  breaks();
  EXPECT_EQ(times<ReconnectPolicy::Probe>(), 2);
}

TEST_F(ReconnectPolicyRules, ProbesTheJobsEndpointAlsoWhenTheNextPortIsTriedMeanwhile) {
  has_further_ports();
  starts();
  connects();
  breaks();
  EXPECT_EQ(core.target(), (Endpoint{"head", 29501}));
  ASSERT_EQ(times<ReconnectPolicy::Probe>(), 1);
  const auto is_probe = [](const ReconnectPolicy::Effect& effect) {
    const auto* probe = std::get_if<ReconnectPolicy::Probe>(&effect);
    return probe != nullptr && probe->place == kHead;
  };
  EXPECT_TRUE(std::ranges::any_of(done, is_probe));
}

TEST_F(ReconnectPolicyRules, TriesTheFurtherPortsOfTheJobInTurn) {
  has_further_ports();
  starts();
  connects();
  receives(control::Refused{"another job", {}, true});
  call([&](Effects& e) { core.on_broken(now, e, true); });
  EXPECT_EQ(core.target(), (Endpoint{"head", 29501}));
  next_act();
  dial_fails();
  EXPECT_EQ(core.target(), (Endpoint{"head", 29502}));
  next_act();
  connects();
  receives(control::Bye{});
  breaks();
  EXPECT_EQ(core.target(), (Endpoint{"head", 29502})) << "the job is led there";
}

TEST_F(ReconnectPolicyRules, R16_TriesEndpointsInTurnThenPauses) {
  const Endpoint standby{"10.0.0.2", 4711};
  starts();
  connects();
  receives(control::Bye{});
  core.set_routes({standby}, false, false);
  EXPECT_EQ(core.target(), kHead) << "the connection stands";
  breaks();
  EXPECT_EQ(next_act(), Duration(50ms));
  EXPECT_EQ(core.target(), kHead) << "where it was is tried once more";
  dial_fails();
  EXPECT_EQ(next_act(), Duration{});
  EXPECT_EQ(core.target(), standby);
  dial_fails();
  EXPECT_EQ(next_act(), Duration(100ms));
  EXPECT_EQ(core.target(), kHead);
}

TEST_F(ReconnectPolicyRules, R13_ConnectsLessOftenToAPeerThatDoesNotLead) {
  const Endpoint standby{"10.0.0.2", 4711};
  starts();
  core.set_routes({standby}, false, false);
  for (Duration expected : {50ms, 100ms, 200ms, 400ms, 800ms, 1000ms, 1000ms}) {
    const Endpoint asked = core.target();
    connects();
    receives(control::Registered{});
    call([&](auto& effects) { core.on_broken(now, effects, true); });
    EXPECT_NE(core.target(), asked) << "the others may know better";
    EXPECT_EQ(next_act(), expected);
  }
  connects();
  receives(control::Registered{});
  breaks();
  EXPECT_EQ(next_act(), Duration(50ms)) << "that one did lead";
}

class ReconnectPolicyElected : public ReconnectPolicyTest {
 protected:
  ReconnectPolicyElected() {
    std::destroy_at(&core);
    std::construct_at(
        &core, ReconnectPolicy::Options{Endpoint{}, false, 60s, limits::kReconnectMax, true});
  }
  static inline const Endpoint kHere{"10.0.0.2", 4711};
  static inline const Endpoint kThere{"10.0.0.3", 4712};
};

TEST_F(ReconnectPolicyElected, R18_ConnectsNowhereBeforeALeaderIsElected) {
  starts();
  EXPECT_EQ(times<ReconnectPolicy::Connect>(), 0);
  EXPECT_TRUE(core.next_deadline().is_never());
  core.set_routes({kHere}, true, false);
  EXPECT_LE(next_act(), Duration{});
  EXPECT_EQ(times<ReconnectPolicy::Connect>(), 1);
  EXPECT_EQ(core.target(), kHere);
}

TEST_F(ReconnectPolicyElected, R18_ConnectsOnlyToTheLeader) {
  starts();
  core.set_routes({kHere}, true, false);
  next_act();
  dial_fails();
  EXPECT_EQ(next_act(), Duration(50ms));
  EXPECT_EQ(core.target(), kHere);
}

TEST_F(ReconnectPolicyElected, R18_ConnectsToANewLeaderBeforeTheOldOneAnswers) {
  starts();
  core.set_routes({kHere}, true, false);
  next_act();
  core.set_routes({kThere}, true, false);
  EXPECT_LE(next_act(), Duration{});
  EXPECT_EQ(times<ReconnectPolicy::Connect>(), 2);
  EXPECT_EQ(core.target(), kThere);
}

TEST_F(ReconnectPolicyElected, R18_ErrorsNameTheLeader) {
  starts();
  core.set_routes({kHere}, true, false);
  next_act();
  dial_fails();
  now = now + 3s;
  dial_fails();
  ASSERT_EQ(times<ReconnectPolicy::Trouble>(), 1);
  EXPECT_NE(newest<ReconnectPolicy::Trouble>(done)->text.find("10.0.0.2:4711"), std::string::npos);
}

TEST_F(ReconnectPolicyRules, R17_TriesAKnownLeaderFirst) {
  const Endpoint there{"10.0.0.2", 4711};
  starts();
  connects();
  receives(control::Bye{});
  core.set_routes({there}, true, false);
  EXPECT_EQ(core.target(), there);
}

TEST_F(ReconnectPolicyRules, R4_ReportsARefusedConnection) {
  starts();
  dial_fails();
  ASSERT_EQ(times<ReconnectPolicy::Refused>(), 1);
}

TEST_F(ReconnectPolicyRules, TheOwnCoordinatorMayStartSlowly) {
  ReconnectPolicy own({Endpoint{"127.0.0.1", 29500}, true, 60s});
  own.on_connected(now);
  EXPECT_TRUE(own.next_deadline().is_never());
}

TEST_F(ReconnectPolicyRules, DecodesMessagesFromAnyFragments) {
  connects();
  std::vector<uint8_t> bytes = to_frame(control::encode(control::Pong{7, 4s}));
  std::vector<uint8_t> more = to_frame(control::encode(control::Bye{}));
  bytes.insert(bytes.end(), more.begin(), more.end());
  for (uint8_t byte : bytes) receives(std::span(&byte, 1));
  ASSERT_EQ(received.size(), 2U);
  EXPECT_EQ(std::get<control::Pong>(received[0]).seq, 7);
  EXPECT_TRUE(std::holds_alternative<control::Bye>(received[1]));
}

TEST_F(ReconnectPolicyRules, InvalidBytesEndTheConnectionOnce) {
  connects();
  receives(std::vector<uint8_t>{0, 0, 0, 0, 1, 2, 3});
  EXPECT_EQ(times<ReconnectPolicy::Broken>(), 1);
  EXPECT_FALSE(core.is_connected());
  receives(control::Bye{});
  EXPECT_TRUE(received.empty());
  breaks();
  EXPECT_EQ(times<ReconnectPolicy::Broken>(), 1);
}

TEST_F(ReconnectPolicyRules, BytesOfAnOldConnectionDoNotReachTheNext) {
  connects();
  std::vector<uint8_t> bytes = to_frame(control::encode(control::Pong{7, 4s}));
  receives(std::span(bytes).first(6));
  breaks();
  connects();
  receives(control::Bye{});
  EXPECT_EQ(received.size(), 1U);
}

TEST_F(ReconnectPolicyRules, ReportsAPersistentErrorOnceAMinute) {
  starts();
  Instant begun = now;
  while (now < begun + 130s) {
    dial_fails();
    next_act();
  }
  EXPECT_EQ(times<ReconnectPolicy::Trouble>(), 3);  // after 2, 62 and 122 s
}

TEST_F(ReconnectPolicyRules, TriesNothingAfterClose) {
  starts();
  core.close();
  dial_fails();
  EXPECT_TRUE(core.next_deadline().is_never());
  connects();
  breaks();
  EXPECT_EQ(times<ReconnectPolicy::Broken>(), 0);
  EXPECT_EQ(times<ReconnectPolicy::ResetConnection>(), 1);
}

}  // namespace
}  // namespace cpprun::test
