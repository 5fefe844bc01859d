// Who may give orders over TCP: what opens the gate, and everything that does not.
#include "rendezvous/server/operator_gate.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "common/limits/operators.hpp"
#include "common/proof/proof.hpp"
#include "rendezvous/protocol/admin/orders.hpp"

namespace cpprun::test {
namespace {

using namespace std::chrono_literals;
using control::Command;
using control::OrderKind;

constexpr const char* kToken = "a token that nobody guesses";

class Gate : public testing::Test {
 public:
  Gate() {
    gate.open(kToken, [this] { return "nonce " + std::to_string(++nonces); });
  }

  Result<std::string> asks(const std::string& peer = "10.0.0.1") {
    return gate.on_operate(now, session, peer, {control::kProtocolVersion, "0"});
  }
  Status gives(Command command, const std::string& peer = "10.0.0.1") {
    return gate.on_command(now, session, peer, command);
  }
  static Command proven(const std::string& token, const std::string& nonce, Command command) {
    command.proof = proof_of(token, control::proven_words(nonce, command));
    return command;
  }

  OperatorGate gate;
  SessionId session{1};
  Instant now = Instant::from_nanoseconds(1'000'000'000'000);
  int nonces = 0;
  const Command restart{"job", {0, OrderKind::Restart}};
};

TEST_F(Gate, WhoKnowsTheTokenMayOnceForEachNonce) {
  const Result<std::string> nonce = asks();
  ASSERT_TRUE(nonce.ok()) << nonce.error().text;
  const Command command = proven(kToken, *nonce, restart);
  EXPECT_TRUE(gives(command).ok());
  EXPECT_FALSE(gives(command).ok()) << "overheard and said again";
  ASSERT_TRUE(asks().ok());
  EXPECT_FALSE(gives(command).ok()) << "said again to another nonce";
}

TEST_F(Gate, NothingOfAnOrderCanBeChanged) {
  using Change = void (*)(Command&);
  const Command order{"job", {0, OrderKind::Drain, false, "n01", 2}};
  const std::vector<Change> changes{
      [](Command& c) { c.run_id = "other"; },
      [](Command& c) { c.order.kind = OrderKind::Stop; },
      [](Command& c) { c.order.is_resumable = true; },
      [](Command& c) { c.order.node = "n02"; },
      [](Command& c) { c.order.nodes = 3; },
      [](Command& c) { c.proof.back() = c.proof.back() == '0' ? '1' : '0'; },
      [](Command& c) { c.proof.clear(); },
  };
  for (const Change change : changes) {
    Command command = proven(kToken, *asks(), order);
    change(command);
    EXPECT_FALSE(gives(command).ok()) << command.run_id << command.order.node;
    now = now + limits::kOrderAfterWrong;
  }
  EXPECT_TRUE(gives(proven(kToken, *asks(), order)).ok());
  EXPECT_NE(control::proven_words("n", {"a", {0, OrderKind::Drain, false, "bc"}}),
            control::proven_words("n", {"ab", {0, OrderKind::Drain, false, "c"}}));
}

TEST_F(Gate, EachOrderOfAnAgentHasANonceOfItsOwn) {
  const Command stop{"job", {1, OrderKind::Stop}};
  const Command scale{"job", {2, OrderKind::Scale, false, "", 2}};
  const auto first = gate.on_order(now, session, "10.0.0.1", 1);
  const auto second = gate.on_order(now, session, "10.0.0.1", 2);
  ASSERT_TRUE(first.ok() && second.ok());
  EXPECT_NE(*first, *second);
  EXPECT_TRUE(gives(proven(kToken, *first, stop)).ok());
  EXPECT_FALSE(gives(proven(kToken, *first, stop)).ok()) << "said again";
  EXPECT_TRUE(gives(proven(kToken, *second, scale)).ok());
}

TEST_F(Gate, AnOrderByTheNonceOfAnotherIsWrong) {
  ASSERT_TRUE(gate.on_order(now, session, "10.0.0.1", 1).ok());
  const auto second = gate.on_order(now, session, "10.0.0.1", 2);
  EXPECT_FALSE(gives(proven(kToken, *second, {"job", {1, OrderKind::Stop}})).ok());
  EXPECT_FALSE(gives(proven(kToken, *second, {"job", {3, OrderKind::Stop}})).ok())
      << "no nonce was given out for that";
}

TEST_F(Gate, AWrongTokenHasToWait) {
  const Result<std::string> nonce = asks();
  const Status wrong = gives(proven("another token of some length", *nonce, restart));
  EXPECT_NE(wrong.error().text.find("the token is wrong"), std::string::npos);
  EXPECT_FALSE(asks().ok());
  EXPECT_TRUE(asks("10.0.0.2").ok()) << "others need not wait for him";
  now = now + limits::kOrderAfterWrong;
  EXPECT_TRUE(asks().ok());
}

TEST_F(Gate, ANonceGrowsOld) {
  const Command command = proven(kToken, *asks(), restart);
  now = now + limits::kOrderNonceLasts + 1ns;
  EXPECT_FALSE(gives(command).ok());
}

TEST_F(Gate, ManyWhoAskAndSayNothingMore) {
  for (size_t i = 0; i < limits::kOrdersAsked; ++i) {
    session = SessionId(static_cast<int64_t>(i) + 10);
    ASSERT_TRUE(asks().ok());
  }
  session = SessionId(5);
  EXPECT_FALSE(asks().ok());
  gate.on_closed(SessionId(10));
  EXPECT_TRUE(asks().ok());
}

TEST_F(Gate, WithoutATokenNobodyMay) {
  OperatorGate closed;
  const control::Operate operate{control::kProtocolVersion, "0"};
  const auto refused = closed.on_operate(now, session, "10.0.0.1", operate);
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.error().text.find("without CPPRUN_OPERATOR_TOKEN"), std::string::npos);
  EXPECT_FALSE(closed.on_command(now, session, "10.0.0.1", proven("", "", restart)).ok());
  closed.open("short", [] { return "nonce"; });
  EXPECT_FALSE(closed.on_operate(now, session, "10.0.0.1", operate).ok());
  EXPECT_FALSE(closed.on_order(now, session, "10.0.0.1", 1).ok());
  EXPECT_FALSE(gate.on_operate(now, session, "10.0.0.1", {1, "0"}).ok()) << "another version";
}

// RFC 4231, test case 2.
TEST(Proof, IsHmacSha256) {
  EXPECT_EQ(proof_of("Jefe", "what do ya want for nothing?"),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
  EXPECT_FALSE(is_proof("Jefe", "what do ya want for nothing?", ""));
}

}  // namespace
}  // namespace cpprun::test
