// Proof of the admin token, and the text that the MAC covers.
#include "common/proof/hmac.hpp"

#include <gtest/gtest.h>

#include "rendezvous/protocol/admin/admin_commands.hpp"

namespace cpprun::test {
namespace {

// RFC 4231, test case 2.
TEST(Hmac, IsHmacSha256) {
  EXPECT_EQ(hmac_of("Jefe", "what do ya want for nothing?"),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
}

TEST(Hmac, RejectsAnyOtherText) {
  const std::string right = hmac_of("token", "words");
  EXPECT_TRUE(verify_hmac("token", "words", right));
  EXPECT_FALSE(verify_hmac("token", "other words", right));
  EXPECT_FALSE(verify_hmac("other", "words", right));
  EXPECT_FALSE(verify_hmac("token", "words", right.substr(1)));
  EXPECT_FALSE(verify_hmac("token", "words", ""));
  std::string changed = right;
  changed.back() = changed.back() == '0' ? '1' : '0';
  EXPECT_FALSE(verify_hmac("token", "words", changed));
}

TEST(AdminMacInput, TheInputMatchesTheDocument) {
  const control::AdminRequest request{
      "job",
      {7, control::AdminCommandKind::Scale, true, "node 1", 3, "why"},
      "the MAC is no part of them"};
  EXPECT_EQ(control::admin_mac_input("nonce", request),
            "cpprun-admin-1\n5:nonce\n3:job\n6:node 1\n3:why\n3 3 1\n");
}

TEST(AdminMacInput, DifferentTextsHaveDifferentInputs) {
  control::AdminRequest one{"a", {}, ""};
  control::AdminRequest other{"a\n0:", {}, ""};
  EXPECT_NE(control::admin_mac_input("n", one), control::admin_mac_input("n", other));
  one.command.is_resumable = true;
  EXPECT_NE(control::admin_mac_input("n", one), control::admin_mac_input("n", {"a", {}, ""}));
}

TEST(AdminCommandKinds, ConvertByName) {
  for (const control::AdminCommandKind kind : control::kAdminCommandKinds) {
    EXPECT_EQ(control::admin_command_kind(control::name_of(kind)), kind);
  }
  EXPECT_FALSE(control::admin_command_kind("explode"));
  EXPECT_STREQ(control::name_of(static_cast<control::AdminCommandKind>(99)), "");
}

}  // namespace
}  // namespace cpprun::test
