// An elected leader (R18): until when it may grant, what it writes, how it loses or leaves the job.
#include "tests/unit/rendezvous/coordinator/support_election.hpp"

namespace cpprun::test {
namespace {

using namespace std::chrono_literals;
using namespace election;

// ---------------------------------------------------------------- leading

TEST_F(ElectionTest, R18_TheDeadlineCountsFromWhenTheKeepAliveWasSent) {
  wins();
  const Instant sent = now;
  passes(limits::kKeepEach - 50ms);
  answers_to(id_of<KeepAlive>(), Kept{5});
  ASSERT_TRUE(told<Prolong>());
  EXPECT_EQ(told<Prolong>()->until, sent + grant_of(kL));
}

TEST_F(ElectionTest, R18_KeepsItsLeaseAlive) {
  wins();
  for (int i = 0; i < 20; ++i) {
    const uint64_t id = id_of<KeepAlive>();
    answers_to(id, Kept{5});
    passes(1s);
    EXPECT_GT(id_of<KeepAlive>(), id);
  }
  EXPECT_FALSE(told<Lost>());
}

TEST_F(ElectionTest, R18_AnAnswerThatNeverComesHoldsUpNoOtherKeepAlive) {
  wins();
  const uint64_t lost = id_of<KeepAlive>();
  passes(limits::kKeepEach);
  const Instant sent = now;
  const uint64_t next = id_of<KeepAlive>();
  ASSERT_NE(next, lost);
  passes(100ms);
  answers_to(next, Kept{5});
  ASSERT_TRUE(told<Prolong>());
  EXPECT_EQ(told<Prolong>()->until, sent + grant_of(kL));
  answers_to(lost, Kept{5});
  EXPECT_EQ(times<Prolong>(), 1) << "an older one prolongs nothing";
  answers_to(next, Kept{0});
  EXPECT_FALSE(told<Lost>()) << "each is answered once";
}

TEST_F(ElectionTest, R18_ALeaseThatHasEndedIsTheEnd) {
  wins();
  answers_to(id_of<KeepAlive>(), Kept{0});
  EXPECT_TRUE(told<Lost>());
  EXPECT_FALSE(core.is_leading());
  EXPECT_TRUE(asked<Read>()) << "and it looks who leads now";
}

TEST_F(ElectionTest, R18_SilenceOfALeaseIsTheEnd) {
  wins();
  for (int i = 0; i < 100 && !told<Lost>(); ++i) {
    if (core.is_leading()) answers_to(id_of<KeepAlive>(), Failed{"no answer in time"});
    passes(100ms);
    EXPECT_EQ(told<Lost>() != nullptr, now >= Instant::from_nanoseconds(1'000'000'000'000) + kL);
  }
  EXPECT_TRUE(told<Lost>());
}

TEST_F(ElectionTest, R18_WhatIsWrittenIsGuardedByOurKeyAndTheFactsBefore) {
  wins(facts_of(5, 3));
  writes(facts_of(7, 4));
  const auto* write = asked<Write>();
  ASSERT_TRUE(write);
  EXPECT_EQ(write->create_revision, 7);
  EXPECT_EQ(write->mod_revision, 4);
  EXPECT_EQ(control::decode_facts(write->value)->round, RoundNumber(4));
  EXPECT_FALSE(told<Written>());
  answers(Seen{true, 12, {}, {}});
  EXPECT_EQ(times<Written>(), 1);
  writes(facts_of(7, 5));
  EXPECT_EQ(asked<Write>()->mod_revision, 12);
}

TEST_F(ElectionTest, R18_AGuardThatIsBrokenIsTheEnd) {
  wins();
  writes(facts_of(7, 1));
  answers(Seen{false, 20, key(control::encode_leader(place_of(2)), 19, 55), {}});
  EXPECT_TRUE(told<Lost>());
  EXPECT_FALSE(told<Written>());
}

TEST_F(ElectionTest, R18_AKeyThatIsGoneIsTheEnd) {
  wins();
  writes(facts_of(7, 1));
  answers(Seen{false, 20, {}, {}});
  EXPECT_TRUE(told<Lost>());
}

TEST_F(ElectionTest, R18_AWriteWithoutAnAnswerIsTriedAgain) {
  wins();
  writes(facts_of(7, 1));
  answers(Failed{"no answer in time"});
  const uint64_t first = id_of<Write>();
  passes(300ms);
  ASSERT_GT(id_of<Write>(), first);
  answers_to(id_of<Write>(), Seen{true, 12, {}, {}});
  EXPECT_TRUE(told<Written>());
}

TEST_F(ElectionTest, R18_AWriteWhoseAnswerWasLostIsFoundDone) {
  wins();
  writes(facts_of(7, 1));
  const KeyValue ours = key(control::encode_leader(place_of(1)), 7, 99);
  answers(Seen{false, 12, ours, key(control::encode_facts(facts_of(7, 1)), 11)});
  EXPECT_TRUE(told<Written>());
  writes(facts_of(7, 2));
  EXPECT_EQ(asked<Write>()->mod_revision, 11);
}

TEST_F(ElectionTest, R18_AnOlderWriteThatCameLateIsOverwritten) {
  wins();
  writes(facts_of(7, 2));
  const KeyValue ours = key(control::encode_leader(place_of(1)), 7, 99);
  answers(Seen{false, 12, ours, key(control::encode_facts(facts_of(7, 1)), 11)});
  EXPECT_FALSE(told<Written>());
  EXPECT_EQ(asked<Write>()->mod_revision, 11);
}

TEST_F(ElectionTest, R18_WhatEtcdRefusesIsNotTriedForEver) {
  wins();
  writes(facts_of(7, 1));
  answers(Refused{"etcdserver: mvcc: database space exceeded"});
  ASSERT_TRUE(told<Lost>());
  EXPECT_NE(told<Lost>()->why.find("space"), std::string::npos);
}

TEST_F(ElectionTest, R18_WhoHasSleptPastItsDeadlineReleasesNothing) {
  wins();
  writes(facts_of(7, 1));
  const uint64_t write = id_of<Write>();
  now = now + grant_of(kL);  // frozen
  answers_to(write, Seen{true, 12, {}, {}});
  EXPECT_FALSE(told<Written>());
  answers_to(id_of<KeepAlive>(), Kept{5});
  EXPECT_FALSE(told<Written>()) << "that keep-alive was sent long ago";
  passes(0s);
  answers_to(id_of<KeepAlive>(), Kept{5});
  EXPECT_TRUE(told<Written>()) << "nobody else has led meanwhile";
}

// ---------------------------------------------------------------- leaving

TEST_F(ElectionTest, R18_WhoGoesWithoutLiveWorkersGivesTheLeaseBack) {
  wins();
  leaves(true);
  ASSERT_TRUE(asked<Revoke>());
  EXPECT_EQ(asked<Revoke>()->lease, 99);
  EXPECT_FALSE(told<Left>());
  answers(Revoked{});
  EXPECT_TRUE(told<Left>());
  EXPECT_TRUE(core.next_deadline().is_never());
}

TEST_F(ElectionTest, R18_WorkersThatMayLiveKeepTheLease) {
  wins();
  leaves(false);
  EXPECT_FALSE(asked<Revoke>());
  EXPECT_TRUE(told<Left>());
  EXPECT_TRUE(core.next_deadline().is_never());
}

TEST_F(ElectionTest, R18_WhoFollowsJustGoes) {
  starts();
  answers(Seen{true, 6, key(control::encode_leader(place_of(2)), 6, 55), {}});
  leaves(true);
  EXPECT_FALSE(asked<Revoke>());
  EXPECT_TRUE(told<Left>());
}

}  // namespace
}  // namespace cpprun::test
