// An elected leader (R18): the deadline of its worker leases, its writes, and how it loses or
// leaves the job.
#include "tests/unit/rendezvous/coordinator/support_election.hpp"

namespace cpprun::test {
namespace {

using namespace std::chrono_literals;
using namespace election;

TEST_F(ElectionTest, R18_TheDeadlineCountsFromTheSendTimeOfTheKeepAlive) {
  wins();
  const Instant sent = now;
  passes(limits::kLeaseRenewInterval - 50ms);
  respond_to(id_of<KeepAlive>(), KeepAliveResult{5});
  ASSERT_TRUE(effect<ExtendLease>());
  EXPECT_EQ(effect<ExtendLease>()->until, sent + worker_lease_of(kL));
}

TEST_F(ElectionTest, R18_KeepsItsLeaseAlive) {
  wins();
  for (int i = 0; i < 20; ++i) {
    const uint64_t id = id_of<KeepAlive>();
    respond_to(id, KeepAliveResult{5});
    passes(1s);
    EXPECT_GT(id_of<KeepAlive>(), id);
  }
  EXPECT_FALSE(effect<LeadershipLost>());
}

TEST_F(ElectionTest, R18_ALostAnswerDelaysNoOtherKeepAlive) {
  wins();
  const uint64_t lost = id_of<KeepAlive>();
  passes(limits::kLeaseRenewInterval);
  const Instant sent = now;
  const uint64_t next = id_of<KeepAlive>();
  ASSERT_NE(next, lost);
  passes(100ms);
  respond_to(next, KeepAliveResult{5});
  ASSERT_TRUE(effect<ExtendLease>());
  EXPECT_EQ(effect<ExtendLease>()->until, sent + worker_lease_of(kL));
  respond_to(lost, KeepAliveResult{5});
  EXPECT_EQ(times<ExtendLease>(), 1) << "an older one prolongs nothing";
  respond_to(next, KeepAliveResult{0});
  EXPECT_FALSE(effect<LeadershipLost>()) << "each is answered once";
}

TEST_F(ElectionTest, R18_AnExpiredLeaseEndsTheLeadership) {
  wins();
  respond_to(id_of<KeepAlive>(), KeepAliveResult{0});
  EXPECT_TRUE(effect<LeadershipLost>());
  EXPECT_FALSE(core.is_leading());
  EXPECT_TRUE(asked<Read>()) << "and it reads who leads now";
}

TEST_F(ElectionTest, R18_ASilentEtcdEndsTheLeadership) {
  wins();
  for (int i = 0; i < 100 && !effect<LeadershipLost>(); ++i) {
    if (core.is_leading()) respond_to(id_of<KeepAlive>(), Failed{"no answer in time"});
    passes(100ms);
    EXPECT_EQ(effect<LeadershipLost>() != nullptr,
              now >= Instant::from_nanoseconds(1'000'000'000'000) + kL);
  }
  EXPECT_TRUE(effect<LeadershipLost>());
}

TEST_F(ElectionTest, R18_WritesAreGuardedByTheKeyAndThePreviousState) {
  wins(facts_of(5, 3));
  writes(facts_of(7, 4));
  const auto* write = asked<Write>();
  ASSERT_TRUE(write);
  EXPECT_EQ(write->create_revision, 7);
  EXPECT_EQ(write->mod_revision, 4);
  EXPECT_EQ(control::decode_job_state(write->value)->round, RoundNumber(4));
  EXPECT_FALSE(effect<Persisted>());
  respond(ReadResult{true, 12, {}, {}});
  EXPECT_EQ(times<Persisted>(), 1);
  writes(facts_of(7, 5));
  EXPECT_EQ(asked<Write>()->mod_revision, 12);
}

TEST_F(ElectionTest, R18_AFailedGuardEndsTheLeadership) {
  wins();
  writes(facts_of(7, 1));
  respond(ReadResult{false, 20, key(control::encode_leader(place_of(2)), 19, 55), {}});
  EXPECT_TRUE(effect<LeadershipLost>());
  EXPECT_FALSE(effect<Persisted>());
}

TEST_F(ElectionTest, R18_AMissingKeyEndsTheLeadership) {
  wins();
  writes(facts_of(7, 1));
  respond(ReadResult{false, 20, {}, {}});
  EXPECT_TRUE(effect<LeadershipLost>());
}

TEST_F(ElectionTest, R18_RepeatsAWriteWithoutAnAnswer) {
  wins();
  writes(facts_of(7, 1));
  respond(Failed{"no answer in time"});
  const uint64_t first = id_of<Write>();
  passes(300ms);
  ASSERT_GT(id_of<Write>(), first);
  respond_to(id_of<Write>(), ReadResult{true, 12, {}, {}});
  EXPECT_TRUE(effect<Persisted>());
}

TEST_F(ElectionTest, R18_RecognizesAWriteWhoseAnswerWasLost) {
  wins();
  writes(facts_of(7, 1));
  const KeyValue ours = key(control::encode_leader(place_of(1)), 7, 99);
  respond(ReadResult{false, 12, ours, key(control::encode_job_state(facts_of(7, 1)), 11)});
  EXPECT_TRUE(effect<Persisted>());
  writes(facts_of(7, 2));
  EXPECT_EQ(asked<Write>()->mod_revision, 11);
}

TEST_F(ElectionTest, R18_OverwritesALateOlderWrite) {
  wins();
  writes(facts_of(7, 2));
  const KeyValue ours = key(control::encode_leader(place_of(1)), 7, 99);
  respond(ReadResult{false, 12, ours, key(control::encode_job_state(facts_of(7, 1)), 11)});
  EXPECT_FALSE(effect<Persisted>());
  EXPECT_EQ(asked<Write>()->mod_revision, 11);
}

TEST_F(ElectionTest, R18_DoesNotRepeatARefusedWriteForever) {
  wins();
  writes(facts_of(7, 1));
  respond(Refused{"etcdserver: mvcc: database space exceeded"});
  ASSERT_TRUE(effect<LeadershipLost>());
  EXPECT_NE(effect<LeadershipLost>()->why.find("space"), std::string::npos);
}

TEST_F(ElectionTest, R18_ReleasesNothingAfterSleepingPastItsDeadline) {
  wins();
  writes(facts_of(7, 1));
  const uint64_t write = id_of<Write>();
  now = now + worker_lease_of(kL);  // frozen
  respond_to(write, ReadResult{true, 12, {}, {}});
  EXPECT_FALSE(effect<Persisted>());
  respond_to(id_of<KeepAlive>(), KeepAliveResult{5});
  EXPECT_FALSE(effect<Persisted>()) << "that keep-alive was sent long ago";
  passes(0s);
  respond_to(id_of<KeepAlive>(), KeepAliveResult{5});
  EXPECT_TRUE(effect<Persisted>()) << "no other agent has led meanwhile";
}

TEST_F(ElectionTest, R18_RevokesTheLeaseWhenItLeavesWithoutLiveWorkers) {
  wins();
  leaves(true);
  ASSERT_TRUE(asked<Revoke>());
  EXPECT_EQ(asked<Revoke>()->lease, 99);
  EXPECT_FALSE(effect<Resigned>());
  respond(Revoked{});
  EXPECT_TRUE(effect<Resigned>());
  EXPECT_TRUE(core.next_deadline().is_never());
}

TEST_F(ElectionTest, R18_KeepsTheLeaseWhileWorkersMayLive) {
  wins();
  leaves(false);
  EXPECT_FALSE(asked<Revoke>());
  EXPECT_TRUE(effect<Resigned>());
  EXPECT_TRUE(core.next_deadline().is_never());
}

TEST_F(ElectionTest, R18_AFollowerLeavesImmediately) {
  starts();
  respond(ReadResult{true, 6, key(control::encode_leader(place_of(2)), 6, 55), {}});
  leaves(true);
  EXPECT_FALSE(asked<Revoke>());
  EXPECT_TRUE(effect<Resigned>());
}

}  // namespace
}  // namespace cpprun::test
