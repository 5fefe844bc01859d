// Authentication of admin commands over TCP.
#include "rendezvous/server/admin_authenticator.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "common/limits/admin.hpp"
#include "common/proof/hmac.hpp"
#include "rendezvous/protocol/admin/admin_commands.hpp"

namespace cpprun::test {
namespace {

using namespace std::chrono_literals;
using control::AdminCommandKind;
using control::AdminRequest;

constexpr const char* kToken = "a token that nobody guesses";

class AdminAuthenticatorTest : public testing::Test {
 public:
  AdminAuthenticatorTest() {
    gate.open(kToken, [this] { return "nonce " + std::to_string(++nonces); });
  }

  Result<std::string> asks(const std::string& peer = "10.0.0.1") {
    return gate.on_admin_hello(now, session, peer, {control::kProtocolVersion, "0"});
  }
  Status gives(AdminRequest request, const std::string& peer = "10.0.0.1") {
    return gate.on_command(now, session, peer, request);
  }
  static AdminRequest proven(const std::string& token, const std::string& nonce,
                             AdminRequest request) {
    request.mac = hmac_of(token, control::admin_mac_input(nonce, request));
    return request;
  }

  AdminAuthenticator gate;
  SessionId session{1};
  Instant now = Instant::from_nanoseconds(1'000'000'000'000);
  int nonces = 0;
  const AdminRequest restart{"job", {0, AdminCommandKind::Restart}};
};

TEST_F(AdminAuthenticatorTest, TheTokenAuthorizesOneCommandPerNonce) {
  const Result<std::string> nonce = asks();
  ASSERT_TRUE(nonce.ok()) << nonce.error().text;
  const AdminRequest request = proven(kToken, *nonce, restart);
  EXPECT_TRUE(gives(request).ok());
  EXPECT_FALSE(gives(request).ok()) << "overheard and sent again";
  ASSERT_TRUE(asks().ok());
  EXPECT_FALSE(gives(request).ok()) << "sent again to another nonce";
}

TEST_F(AdminAuthenticatorTest, RejectsAModifiedCommand) {
  using Change = void (*)(AdminRequest&);
  const AdminRequest drain{"job", {0, AdminCommandKind::Drain, false, "n01", 2}};
  const std::vector<Change> changes{
      [](AdminRequest& c) { c.run_id = "other"; },
      [](AdminRequest& c) { c.command.kind = AdminCommandKind::Stop; },
      [](AdminRequest& c) { c.command.is_resumable = true; },
      [](AdminRequest& c) { c.command.node = "n02"; },
      [](AdminRequest& c) { c.command.nodes = 3; },
      [](AdminRequest& c) { c.mac.back() = c.mac.back() == '0' ? '1' : '0'; },
      [](AdminRequest& c) { c.mac.clear(); },
  };
  for (const Change change : changes) {
    AdminRequest request = proven(kToken, *asks(), drain);
    change(request);
    EXPECT_FALSE(gives(request).ok()) << request.run_id << request.command.node;
    now = now + limits::kAdminFailureDelay;
  }
  EXPECT_TRUE(gives(proven(kToken, *asks(), drain)).ok());
  EXPECT_NE(control::admin_mac_input("n", {"a", {0, AdminCommandKind::Drain, false, "bc"}}),
            control::admin_mac_input("n", {"ab", {0, AdminCommandKind::Drain, false, "c"}}));
}

TEST_F(AdminAuthenticatorTest, EachCommandOfAnAgentHasItsOwnNonce) {
  const AdminRequest stop{"job", {1, AdminCommandKind::Stop}};
  const AdminRequest scale{"job", {2, AdminCommandKind::Scale, false, "", 2}};
  const auto first = gate.on_admin_command(now, session, "10.0.0.1", 1);
  const auto second = gate.on_admin_command(now, session, "10.0.0.1", 2);
  ASSERT_TRUE(first.ok() && second.ok());
  EXPECT_NE(*first, *second);
  EXPECT_TRUE(gives(proven(kToken, *first, stop)).ok());
  EXPECT_FALSE(gives(proven(kToken, *first, stop)).ok()) << "sent again";
  EXPECT_TRUE(gives(proven(kToken, *second, scale)).ok());
}

TEST_F(AdminAuthenticatorTest, RejectsTheNonceOfAnotherConnection) {
  ASSERT_TRUE(gate.on_admin_command(now, session, "10.0.0.1", 1).ok());
  const auto second = gate.on_admin_command(now, session, "10.0.0.1", 2);
  EXPECT_FALSE(gives(proven(kToken, *second, {"job", {1, AdminCommandKind::Stop}})).ok());
  EXPECT_FALSE(gives(proven(kToken, *second, {"job", {3, AdminCommandKind::Stop}})).ok())
      << "no nonce was given out for that";
}

TEST_F(AdminAuthenticatorTest, AWrongTokenMustWait) {
  const Result<std::string> nonce = asks();
  const Status wrong = gives(proven("another token of some length", *nonce, restart));
  EXPECT_NE(wrong.error().text.find("the token is wrong"), std::string::npos);
  EXPECT_FALSE(asks().ok());
  EXPECT_TRUE(asks("10.0.0.2").ok()) << "others need not wait for him";
  now = now + limits::kAdminFailureDelay;
  EXPECT_TRUE(asks().ok());
}

TEST_F(AdminAuthenticatorTest, NoncesExpire) {
  const AdminRequest request = proven(kToken, *asks(), restart);
  now = now + limits::kAdminNonceLifetime + 1ns;
  EXPECT_FALSE(gives(request).ok());
}

TEST_F(AdminAuthenticatorTest, LimitsOpenChallenges) {
  for (size_t i = 0; i < limits::kAdminChallengesPending; ++i) {
    session = SessionId(i + 10);
    ASSERT_TRUE(asks("10.0.1." + std::to_string(i)).ok());
  }
  session = SessionId(5);
  EXPECT_FALSE(asks().ok());
  gate.on_closed(SessionId(10));
  EXPECT_TRUE(asks().ok());
}

TEST_F(AdminAuthenticatorTest, OneAddressCannotHoldAllChallenges) {
  for (size_t i = 0; i < limits::kAdminChallengesOfPeer; ++i) {
    session = SessionId(i + 10);
    ASSERT_TRUE(asks("10.0.0.2").ok());
  }
  session = SessionId(5);
  EXPECT_FALSE(asks("10.0.0.2").ok());
  EXPECT_TRUE(asks("10.0.0.3").ok());
}

TEST_F(AdminAuthenticatorTest, RefusesEverybodyWithoutAToken) {
  AdminAuthenticator closed;
  const control::AdminHello operate{control::kProtocolVersion, "0"};
  const auto refused = closed.on_admin_hello(now, session, "10.0.0.1", operate);
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.error().text.find("without CPPRUN_ADMIN_TOKEN"), std::string::npos);
  EXPECT_FALSE(closed.on_command(now, session, "10.0.0.1", proven("", "", restart)).ok());
  closed.open("short", [] { return "nonce"; });
  EXPECT_FALSE(closed.on_admin_hello(now, session, "10.0.0.1", operate).ok());
  EXPECT_FALSE(closed.on_admin_command(now, session, "10.0.0.1", 1).ok());
  EXPECT_FALSE(gate.on_admin_hello(now, session, "10.0.0.1", {1, "0"}).ok()) << "another version";
}

// RFC 4231, test case 2.
TEST(Hmac, IsHmacSha256) {
  EXPECT_EQ(hmac_of("Jefe", "what do ya want for nothing?"),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
  EXPECT_FALSE(verify_hmac("Jefe", "what do ya want for nothing?", ""));
}

}  // namespace
}  // namespace cpprun::test
