// Who knows the token, and over which words.
#include "common/proof/proof.hpp"

#include <gtest/gtest.h>

#include "rendezvous/protocol/admin/orders.hpp"

namespace cpprun::test {
namespace {

// RFC 4231, test case 2.
TEST(Proof, IsHmacSha256) {
  EXPECT_EQ(proof_of("Jefe", "what do ya want for nothing?"),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
}

TEST(Proof, AnythingElseIsNone) {
  const std::string right = proof_of("token", "words");
  EXPECT_TRUE(is_proof("token", "words", right));
  EXPECT_FALSE(is_proof("token", "other words", right));
  EXPECT_FALSE(is_proof("other", "words", right));
  EXPECT_FALSE(is_proof("token", "words", right.substr(1)));
  EXPECT_FALSE(is_proof("token", "words", ""));
  std::string changed = right;
  changed.back() = changed.back() == '0' ? '1' : '0';
  EXPECT_FALSE(is_proof("token", "words", changed));
}

TEST(OrderProof, TheWordsAreThoseOfTheDocument) {
  const control::Command command{
      "job", {7, control::OrderKind::Scale, true, "node 1", 3}, "a proof is no part of them"};
  EXPECT_EQ(control::proven_words("nonce", command),
            "cpprun-order-1\n5:nonce\n3:job\n6:node 1\n3 3 1\n");
}

TEST(OrderProof, NoTextPassesForTwo) {
  control::Command one{"a", {}, ""};
  control::Command other{"a\n0:", {}, ""};
  EXPECT_NE(control::proven_words("n", one), control::proven_words("n", other));
  one.order.is_resumable = true;
  EXPECT_NE(control::proven_words("n", one), control::proven_words("n", {"a", {}, ""}));
}

TEST(OrderKinds, EachByItsName) {
  for (const control::OrderKind kind : control::kOrderKinds) {
    EXPECT_EQ(control::order_kind(control::name_of(kind)), kind);
  }
  EXPECT_FALSE(control::order_kind("explode"));
  EXPECT_STREQ(control::name_of(static_cast<control::OrderKind>(99)), "");
}

}  // namespace
}  // namespace cpprun::test
