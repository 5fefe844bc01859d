// Who leads a job whose arbiter is etcd (R18): what is asked, and what is made of the answers.
#include "tests/unit/rendezvous/coordinator/support_election.hpp"

namespace cpprun::test {
namespace {

using namespace std::chrono_literals;
using namespace election;

// ---------------------------------------------------------------- becoming the leader

TEST_F(ElectionTest, R18_LooksBeforeItCampaigns) {
  starts();
  ASSERT_TRUE(asked<Read>());
  EXPECT_EQ(asked<Read>()->leader_key, "cpprun/job/leader");
  EXPECT_EQ(asked<Read>()->facts_key, "cpprun/job/facts");
  answers(Seen{true, 3, {}, {}});
  ASSERT_TRUE(asked<Grant>());
  EXPECT_EQ(asked<Grant>()->ttl_s, 5);
  answers(Granted{99, 5});
  ASSERT_TRUE(asked<Campaign>());
  EXPECT_EQ(asked<Campaign>()->lease, 99);
  EXPECT_EQ(*control::decode_leader(asked<Campaign>()->value), place_of(1));
}

TEST_F(ElectionTest, R18_ALeaseOfPartOfASecondIsRoundedUp) {
  std::destroy_at(&core);
  std::construct_at(&core, Election::Options{"job", place_of(1), 1500ms});
  starts();
  answers(Seen{true, 3, {}, {}});
  EXPECT_EQ(asked<Grant>()->ttl_s, 2);
}

TEST_F(ElectionTest, R18_TheEpochIsTheRevisionAtWhichTheKeyWasMade) {
  wins();
  ASSERT_TRUE(told<Lead>());
  EXPECT_EQ(told<Lead>()->epoch, Epoch(7));
  EXPECT_FALSE(told<Lead>()->facts);
  EXPECT_TRUE(core.is_leading());
}

TEST_F(ElectionTest, R18_TheWinnerHasTheFacts) {
  wins(facts_of(5, 3));
  ASSERT_TRUE(told<Lead>()->facts);
  EXPECT_EQ(told<Lead>()->facts->round, RoundNumber(3));
  EXPECT_EQ(told<Lead>()->epoch, Epoch(7));
}

TEST_F(ElectionTest, R18_EpochsGrowThoughEtcdBeganAnew) {
  wins(facts_of(50, 3));
  EXPECT_EQ(told<Lead>()->epoch, Epoch(51));
}

TEST_F(ElectionTest, R18_WhoIsLateFollows) {
  starts();
  answers(Seen{true, 3, {}, {}});
  answers(Granted{99, 5});
  answers(Seen{false, 6, key(control::encode_leader(place_of(2)), 6, 55), {}});
  ASSERT_TRUE(told<Follow>());
  EXPECT_EQ(told<Follow>()->leader, place_of(2));
  EXPECT_EQ(told<Follow>()->epoch, Epoch(6));
  EXPECT_FALSE(core.is_leading());
}

TEST_F(ElectionTest, R18_ALostAnswerToOurCampaignIsFoundByLooking) {
  starts();
  answers(Seen{true, 3, {}, {}});
  const Instant sent = now;
  answers(Granted{99, 5});
  passes(100ms);
  answers(Failed{"cut off"});
  passes(limits::kLookAgain);
  ASSERT_TRUE(asked<Read>());
  answers(Seen{true, 8, key(control::encode_leader(place_of(1)), 4, 99), {}});
  ASSERT_TRUE(told<Lead>());
  EXPECT_EQ(told<Lead>()->epoch, Epoch(4));
  EXPECT_EQ(told<Lead>()->until, sent + grant_of(kL)) << "counted from the lease's request";
}

TEST_F(ElectionTest, R18_ALostCampaignIsTriedUnderTheSameLease) {
  starts();
  answers(Seen{true, 3, {}, {}});
  answers(Granted{99, 5});
  answers(Failed{"cut off"});
  passes(limits::kLookAgain);
  answers(Seen{true, 8, {}, {}});
  ASSERT_TRUE(asked<Campaign>());
  EXPECT_EQ(asked<Campaign>()->lease, 99);
}

TEST_F(ElectionTest, R18_AKeyOfOursUnderAnotherLeaseIsLeftToEnd) {
  starts();
  answers(Seen{true, 3, key(control::encode_leader(place_of(1)), 2, 11), {}});
  EXPECT_FALSE(told<Follow>());
  EXPECT_FALSE(told<Lead>());
  passes(limits::kLookAgain);
  EXPECT_EQ(times<Ask>(), 2);
}

TEST_F(ElectionTest, R18_AShorterLeaseThanAskedForIsNone) {
  starts();
  answers(Seen{true, 3, {}, {}});
  answers(Granted{99, 4});
  EXPECT_FALSE(asked<Campaign>());
  EXPECT_TRUE(told<Trouble>());
}

TEST_F(ElectionTest, R18_FactsThatCantBeReadAreLedByNobody) {
  starts();
  answers(Seen{true, 3, {}, {}});
  answers(Granted{99, 5});
  answers(Seen{true, 7, {}, key("garbage", 4)});
  EXPECT_FALSE(told<Lead>());
  ASSERT_TRUE(told<Trouble>());
  EXPECT_NE(told<Trouble>()->text.find("cpprun/job/facts"), std::string::npos);
}

TEST_F(ElectionTest, R18_ALeaderThatCantBeReadIsNotFollowed) {
  starts();
  answers(Seen{true, 3, key("garbage", 2, 11), {}});
  EXPECT_FALSE(told<Follow>());
  EXPECT_TRUE(told<Trouble>());
}

TEST_F(ElectionTest, R18_WhoIsGoingDoesNotCampaign) {
  core.set_willing(false);
  starts();
  answers(Seen{true, 3, {}, {}});
  EXPECT_FALSE(asked<Grant>());
  passes(limits::kLookAgain);
  EXPECT_EQ(times<Ask>(), 2) << "somebody else may lead";
}

// ---------------------------------------------------------------- following

TEST_F(ElectionTest, R18_WhoIsLedAsksNothing) {
  starts();
  answers(Seen{true, 6, key(control::encode_leader(place_of(2)), 6, 55), {}});
  is_led(true);
  passes(60s);
  EXPECT_EQ(times<Ask>(), 1);
  is_led(false);
  EXPECT_EQ(times<Ask>(), 2);
}

TEST_F(ElectionTest, R18_ALeaderIsToldOnceAndTheNextOneToo) {
  starts();
  for (int i = 0; i < 3; ++i) {
    answers(Seen{true, 6, key(control::encode_leader(place_of(2)), 6, 55), {}});
    passes(limits::kLookAgain);
  }
  EXPECT_EQ(times<Follow>(), 1);
  answers(Seen{true, 9, key(control::encode_leader(place_of(3)), 9, 56), {}});
  EXPECT_EQ(told<Follow>()->leader, place_of(3));
}

TEST_F(ElectionTest, R18_AnAnswerOfAnEarlierTimeChangesNothing) {
  starts();
  const uint64_t first = asks.back().id;
  answers(Failed{"no answer in time"});
  passes(limits::kLookAgain);
  answers_to(first, Seen{true, 6, key(control::encode_leader(place_of(2)), 6, 55), {}});
  EXPECT_FALSE(told<Follow>());
}

}  // namespace
}  // namespace cpprun::test
