// Authentication for log lines: the token, once for each nonce.
#include "rendezvous/server/dashboard/log_authenticator.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/limits/admin.hpp"
#include "common/limits/dashboard.hpp"
#include "common/proof/hmac.hpp"

namespace cpprun {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

const std::string kToken = "nobody guesses this token";
const JobRank kWanted{"a job & more", 3};

class LogAuthenticatorTest : public testing::Test {
 public:
  LogAuthenticatorTest() {
    gate.open(kToken, [this] { return "nonce" + std::to_string(++nonces); });
  }
  std::string nonce(const std::string& peer = "10.0.0.1") {
    const Result<std::string> got = gate.on_nonce(now, peer);
    return got ? *got : got.error().text;
  }
  static std::string query(const std::string& nonce, const std::string& token = kToken) {
    return "job=a%20job%20%26%20more&rank=3&nonce=" + nonce +
           "&mac=" + hmac_of(token, log_mac_input(nonce, kWanted));
  }
  Result<JobRank> asks(const std::string& text, const std::string& peer = "10.0.0.1") {
    return gate.on_query(now, peer, text);
  }
  LogAuthenticator gate;
  Instant now = Instant{} + 100s;
  int nonces = 0;
};

TEST_F(LogAuthenticatorTest, AValidMacGrantsAccess) {
  const Result<JobRank> may = asks(query(nonce()));
  ASSERT_TRUE(may) << may.error().text;
  EXPECT_EQ(*may, kWanted);
}

TEST_F(LogAuthenticatorTest, ANonceIsValidOnceAndBriefly) {
  const std::string once = nonce();
  EXPECT_TRUE(asks(query(once)));
  EXPECT_FALSE(asks(query(once)));
  const std::string old = nonce();
  now = now + limits::kLogNonceLifetime + 1ns;
  EXPECT_FALSE(asks(query(old)));
  EXPECT_FALSE(asks(query("never given")));
}

TEST_F(LogAuthenticatorTest, AMacIsValidForOneRankOfOneJob) {
  std::string other = query(nonce());
  other.replace(other.find("rank=3"), 6, "rank=4");
  EXPECT_FALSE(asks(other));
}

TEST_F(LogAuthenticatorTest, AWrongTokenMustWait) {
  const Result<JobRank> wrong = asks(query(nonce(), "another token of this length"));
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().kind, ErrorKind::Refused);
  EXPECT_THAT(nonce(), HasSubstr("a wrong token came from there"));
  EXPECT_TRUE(gate.on_nonce(now, "10.0.0.2")) << "others need not";
  now = now + limits::kAdminFailureDelay;
  EXPECT_TRUE(asks(query(nonce())));
}

TEST_F(LogAuthenticatorTest, RefusesEverybodyWithoutAToken) {
  LogAuthenticator closed;
  EXPECT_THAT(closed.on_nonce(now, "10.0.0.1").error().text, HasSubstr("CPPRUN_ADMIN_TOKEN"));
  closed.open("short", [] { return "n"; });
  EXPECT_FALSE(closed.on_nonce(now, "10.0.0.1"));
  EXPECT_FALSE(closed.on_query(now, "10.0.0.1", query("n", "short")));
  EXPECT_FALSE(closed.on_query(now, "10.0.0.1", query("", "")));
}

TEST_F(LogAuthenticatorTest, LimitsOpenNonces) {
  for (size_t i = 0; i < limits::kAdminChallengesOfPeer; ++i) nonce("10.0.0.2");
  EXPECT_THAT(nonce("10.0.0.2"), HasSubstr("too many"));
  EXPECT_THAT(nonce(), HasSubstr("nonce"));
  for (size_t i = 0; i < limits::kAdminChallengesPending; ++i) nonce("10.0.1." + std::to_string(i));
  EXPECT_THAT(nonce(), HasSubstr("too many"));
}

TEST_F(LogAuthenticatorTest, RejectsInvalidQueries) {
  for (const char* text : {"", "&&&", "rank", "rank=x", "rank=-1", "rank=99999999999999999999",
                           "job=%", "rank=3&nonce=%zz&mac=%4"}) {
    EXPECT_FALSE(asks(text)) << text;
  }
  EXPECT_EQ(query_parameters("a=%41%zz%4&b&=c&d=e=f"),
            (std::map<std::string, std::string>{{"a", "A%zz%4"}, {"", "c"}, {"d", "e=f"}}));
}

}  // namespace
}  // namespace cpprun
