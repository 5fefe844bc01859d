// The election of a job's leader by etcd (R18): requests and handling of answers.
#include "tests/unit/rendezvous/coordinator/support_election.hpp"

namespace cpprun::test {
namespace {

using namespace std::chrono_literals;
using namespace election;

TEST_F(ElectionTest, R18_ReadsBeforeItCampaigns) {
  starts();
  ASSERT_TRUE(asked<Read>());
  EXPECT_EQ(asked<Read>()->leader_key, "cpprun/job/leader");
  EXPECT_EQ(asked<Read>()->job_state_key, "cpprun/job/job_state");
  respond(ReadResult{true, 3, {}, {}});
  ASSERT_TRUE(asked<Grant>());
  EXPECT_EQ(asked<Grant>()->ttl_s, 5);
  respond(Granted{99, 5});
  ASSERT_TRUE(asked<Campaign>());
  EXPECT_EQ(asked<Campaign>()->lease, 99);
  EXPECT_EQ(*control::decode_leader(asked<Campaign>()->value), place_of(1));
}

TEST_F(ElectionTest, R18_RoundsAFractionalLeaseUp) {
  std::destroy_at(&core);
  std::construct_at(&core, Election::Options{"job", place_of(1), 1500ms});
  starts();
  respond(ReadResult{true, 3, {}, {}});
  EXPECT_EQ(asked<Grant>()->ttl_s, 2);
}

TEST_F(ElectionTest, R18_TheTermIsTheCreateRevisionOfTheKey) {
  wins();
  ASSERT_TRUE(effect<Elected>());
  EXPECT_EQ(effect<Elected>()->term, Term(7));
  EXPECT_FALSE(effect<Elected>()->facts);
  EXPECT_TRUE(core.is_leading());
}

TEST_F(ElectionTest, R18_TheWinnerReadsTheJobState) {
  wins(facts_of(5, 3));
  ASSERT_TRUE(effect<Elected>()->facts);
  EXPECT_EQ(effect<Elected>()->facts->round, RoundNumber(3));
  EXPECT_EQ(effect<Elected>()->term, Term(7));
}

TEST_F(ElectionTest, R18_TermsGrowThoughEtcdWasReset) {
  wins(facts_of(50, 3));
  EXPECT_EQ(effect<Elected>()->term, Term(51));
}

TEST_F(ElectionTest, R18_TheLaterCandidateFollows) {
  starts();
  respond(ReadResult{true, 3, {}, {}});
  respond(Granted{99, 5});
  respond(ReadResult{false, 6, key(control::encode_leader(place_of(2)), 6, 55), {}});
  ASSERT_TRUE(effect<FollowLeader>());
  EXPECT_EQ(effect<FollowLeader>()->leader, place_of(2));
  EXPECT_EQ(effect<FollowLeader>()->term, Term(6));
  EXPECT_FALSE(core.is_leading());
}

TEST_F(ElectionTest, R18_AReadFindsTheCampaignWhoseAnswerWasLost) {
  starts();
  respond(ReadResult{true, 3, {}, {}});
  const Instant sent = now;
  respond(Granted{99, 5});
  passes(100ms);
  respond(Failed{"cut off"});
  passes(limits::kLeaderPollInterval);
  ASSERT_TRUE(asked<Read>());
  respond(ReadResult{true, 8, key(control::encode_leader(place_of(1)), 4, 99), {}});
  ASSERT_TRUE(effect<Elected>());
  EXPECT_EQ(effect<Elected>()->term, Term(4));
  EXPECT_EQ(effect<Elected>()->until, sent + worker_lease_of(kL))
      << "counted from the lease's request";
}

TEST_F(ElectionTest, R18_RepeatsALostCampaignUnderTheSameLease) {
  starts();
  respond(ReadResult{true, 3, {}, {}});
  respond(Granted{99, 5});
  respond(Failed{"cut off"});
  passes(limits::kLeaderPollInterval);
  respond(ReadResult{true, 8, {}, {}});
  ASSERT_TRUE(asked<Campaign>());
  EXPECT_EQ(asked<Campaign>()->lease, 99);
}

TEST_F(ElectionTest, R18_LetsItsKeyUnderAnotherLeaseExpire) {
  starts();
  respond(ReadResult{true, 3, key(control::encode_leader(place_of(1)), 2, 11), {}});
  EXPECT_FALSE(effect<FollowLeader>());
  EXPECT_FALSE(effect<Elected>());
  passes(limits::kLeaderPollInterval);
  EXPECT_EQ(times<SendRequest>(), 2);
}

TEST_F(ElectionTest, R18_RejectsAShorterLeaseThanRequested) {
  starts();
  respond(ReadResult{true, 3, {}, {}});
  respond(Granted{99, 4});
  EXPECT_FALSE(asked<Campaign>());
  EXPECT_TRUE(effect<Trouble>());
}

TEST_F(ElectionTest, R18_DoesNotLeadWithUnreadableJobState) {
  starts();
  respond(ReadResult{true, 3, {}, {}});
  respond(Granted{99, 5});
  respond(ReadResult{true, 7, {}, key("garbage", 4)});
  EXPECT_FALSE(effect<Elected>());
  ASSERT_TRUE(effect<Trouble>());
  EXPECT_NE(effect<Trouble>()->text.find("cpprun/job/job_state"), std::string::npos);
}

TEST_F(ElectionTest, R18_DoesNotFollowAnUnreadableLeader) {
  starts();
  respond(ReadResult{true, 3, key("garbage", 2, 11), {}});
  EXPECT_FALSE(effect<FollowLeader>());
  EXPECT_TRUE(effect<Trouble>());
}

TEST_F(ElectionTest, R18_DoesNotCampaignWhileLeaving) {
  core.set_candidate(false);
  starts();
  respond(ReadResult{true, 3, {}, {}});
  EXPECT_FALSE(asked<Grant>());
  passes(limits::kLeaderPollInterval);
  EXPECT_EQ(times<SendRequest>(), 2) << "somebody else may lead";
}

TEST_F(ElectionTest, R18_AsksNothingWhileItHasALeader) {
  starts();
  respond(ReadResult{true, 6, key(control::encode_leader(place_of(2)), 6, 55), {}});
  is_led(true);
  passes(60s);
  EXPECT_EQ(times<SendRequest>(), 1);
  is_led(false);
  EXPECT_EQ(times<SendRequest>(), 2);
}

TEST_F(ElectionTest, R18_ReportsEachLeaderOnce) {
  starts();
  for (int i = 0; i < 3; ++i) {
    respond(ReadResult{true, 6, key(control::encode_leader(place_of(2)), 6, 55), {}});
    passes(limits::kLeaderPollInterval);
  }
  EXPECT_EQ(times<FollowLeader>(), 1);
  respond(ReadResult{true, 9, key(control::encode_leader(place_of(3)), 9, 56), {}});
  EXPECT_EQ(effect<FollowLeader>()->leader, place_of(3));
}

TEST_F(ElectionTest, R18_IgnoresAnAnswerToAnOlderRequest) {
  starts();
  const uint64_t first = asks.back().id;
  respond(Failed{"no answer in time"});
  passes(limits::kLeaderPollInterval);
  respond_to(first, ReadResult{true, 6, key(control::encode_leader(place_of(2)), 6, 55), {}});
  EXPECT_FALSE(effect<FollowLeader>());
}

}  // namespace
}  // namespace cpprun::test
