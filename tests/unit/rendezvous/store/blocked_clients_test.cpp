#include <functional>

#include "tests/support/store_fixture.hpp"

namespace cpprun {
namespace {

TEST_F(StoreTest, WaitForPresentKeysOrForNoneIsAnsweredImmediately) {
  set(1, "/a", "");
  EXPECT_EQ(list(2, Op::Wait, {"/a"}), "b0");
  EXPECT_EQ(list(2, Op::Wait, {}), "b0");
}

TEST_F(StoreTest, EveryWriteWakesWaiters) {
  struct Way {
    const char* name;
    std::function<void()> write;
  };
  for (const Way& way :
       std::vector<Way>{{"/set", [&] { set(1, "/set", "1"); }},
                        {"/add", [&] { number(1, Op::Add, "/add", 1); }},
                        {"/append", [&] { write(1, Op::Append, "/append", "1"); }},
                        {"/compare_set", [&] { compare_set("/compare_set", "", "1"); }},
                        {"/push", [&] { write(1, Op::QueuePush, "/push", "1"); }}}) {
    EXPECT_EQ(list(2, Op::Wait, {way.name}), "") << way.name;
    way.write();
    EXPECT_EQ(replies_to(2), "b0") << way.name;
  }
  EXPECT_EQ(store_.waits(), 0u);
}

TEST_F(StoreTest, CompareSetWithoutEffectWakesNoWaiter) {
  list(2, Op::Wait, {"/c"});
  compare_set("/c", "expected", "new");
  EXPECT_EQ(replies_to(2), "");
}

TEST_F(StoreTest, WaitForManyKeysEndsWithTheLast) {
  list(2, Op::Wait, {"/a", "/b", "/c"});
  set(1, "/b", "");
  set(1, "/b", "");
  set(1, "/a", "");
  EXPECT_EQ(replies_to(2), "");
  set(1, "/c", "");
  EXPECT_EQ(replies_to(2), "b0");
}

TEST_F(StoreTest, DuplicateKeysInOneWaitCountOnce) {
  list(2, Op::Wait, {"/a", "/a", "/b", "/a"});
  set(1, "/a", "");
  EXPECT_EQ(replies_to(2), "");
  set(1, "/b", "");
  EXPECT_EQ(replies_to(2), "b0");
}

TEST_F(StoreTest, AKeySetAndDeletedStillCounts) {
  list(2, Op::Wait, {"/a", "/b"});
  set(1, "/a", "");
  key(1, Op::DeleteKey, "/a");
  set(1, "/b", "");
  EXPECT_EQ(replies_to(2), "b0");
}

TEST_F(StoreTest, CancelWaitIsAlwaysAnsweredAndTheWaitNeverAfterIt) {
  EXPECT_EQ(bare(2, Op::CancelWait), "b1");
  list(2, Op::Wait, {"/a"});
  EXPECT_EQ(bare(2, Op::CancelWait), "b1");
  set(1, "/a", "");
  EXPECT_EQ(replies_to(2), "");
  EXPECT_EQ(list(2, Op::Wait, {"/a"}), "b0");
}

TEST_F(StoreTest, CancelThatCrossesTheWakeGetsBothBytes) {
  list(2, Op::Wait, {"/a"});
  set(1, "/a", "");
  EXPECT_EQ(bare(2, Op::CancelWait), "b0 b1");
}

TEST_F(StoreTest, ANewerWaitReplacesTheOlder) {
  list(2, Op::Wait, {"/a"});
  list(2, Op::Wait, {"/b"});
  set(1, "/a", "");
  EXPECT_EQ(replies_to(2), "");
  set(1, "/b", "");
  EXPECT_EQ(replies_to(2), "b0");
}

TEST_F(StoreTest, AClosedSessionIsForgotten) {
  list(2, Op::Wait, {"/a", "/b"});
  list(3, Op::Wait, {"/a"});
  closed(2);
  set(1, "/a", "");
  set(1, "/b", "");
  EXPECT_EQ(replies_to(2), "");
  EXPECT_EQ(replies_to(3), "b0");
  EXPECT_EQ(store_.waits(), 0u);
}

TEST_F(StoreTest, EachWaiterIsAnsweredOnce) {
  for (uint64_t s = 10; s < 20; ++s) list(s, Op::Wait, {"/a"});
  set(1, "/a", "");
  set(1, "/a", "");
  for (uint64_t s = 10; s < 20; ++s) EXPECT_EQ(replies_to(s), "b0");
}

TEST_F(StoreTest, QueuesAreFirstInFirstOut) {
  for (std::string_view item : {"a", "", "c"}) write(1, Op::QueuePush, "/q", item);
  EXPECT_EQ(key(1, Op::QueueLen, "/q"), "3");
  EXPECT_EQ(key(1, Op::QueuePop, "/q"), "3 'a'");
  EXPECT_EQ(key(1, Op::QueuePop, "/q"), "2 ''");
  EXPECT_EQ(key(1, Op::QueuePop, "/q"), "1 'c'");
  EXPECT_EQ(key(1, Op::QueuePop, "/q"), "0");
  EXPECT_EQ(key(1, Op::QueueLen, "/q"), "0");
}

TEST_F(StoreTest, ANonEmptyQueueCountsAsPresentForCheckAndWait) {
  write(1, Op::QueuePush, "/q", "x");
  EXPECT_EQ(list(1, Op::Check, {"/q"}), "b0");
  EXPECT_EQ(list(1, Op::Wait, {"/q"}), "b0");
  set(1, "/a", "");
  EXPECT_EQ(list(1, Op::Wait, {"/a", "/q"}), "b0");
  key(1, Op::QueuePop, "/q");
  EXPECT_EQ(list(1, Op::Check, {"/q"}), "b1");
}

TEST_F(StoreTest, DeleteAndGetDoNotTouchQueues) {
  write(1, Op::QueuePush, "/q", "x");
  EXPECT_EQ(key(1, Op::DeleteKey, "/q"), "0");
  EXPECT_EQ(get("/q"), "''");
  EXPECT_EQ(key(1, Op::QueueLen, "/q"), "1");
}

TEST_F(StoreTest, APushWakesOneWaiterInOrderOfArrival) {
  for (uint64_t s : {2u, 3u, 4u}) list(s, Op::Wait, {"/q"});
  write(1, Op::QueuePush, "/q", "x");
  EXPECT_EQ(replies_to(2), "b0");
  EXPECT_EQ(replies_to(3), "");
  EXPECT_EQ(key(2, Op::QueuePop, "/q"), "1 'x'");
  EXPECT_EQ(replies_to(3), "");
  write(1, Op::QueuePush, "/q", "y");
  EXPECT_EQ(replies_to(3), "b0");
  EXPECT_EQ(replies_to(4), "");
}

// The first one waits for another key too, so the item would lie there while the second one sleeps.
TEST_F(StoreTest, APushWakesTheFirstWaiterThatNeedsNothingElse) {
  list(2, Op::Wait, {"/q", "/other"});
  for (uint64_t s : {3u, 4u}) list(s, Op::Wait, {"/q"});
  write(1, Op::QueuePush, "/q", "x");
  EXPECT_EQ(replies_to(2), "");
  EXPECT_EQ(replies_to(3), "b0");
  EXPECT_EQ(replies_to(4), "");
  set(1, "/other", "");
  EXPECT_EQ(replies_to(2), "b0") << "the queue had an item once";
}

TEST_F(StoreTest, ASetOfTheSameNameWakesAllWaitersOfAQueue) {
  for (uint64_t s : {2u, 3u}) list(s, Op::Wait, {"/q"});
  set(1, "/q", "");
  EXPECT_EQ(replies_to(2), "b0");
  EXPECT_EQ(replies_to(3), "b0");
}

TEST_F(StoreTest, AnItemWhoseWaiterVanishesWakesTheNext) {
  for (uint64_t s : {2u, 3u}) list(s, Op::Wait, {"/q"});
  write(1, Op::QueuePush, "/q", "x");
  closed(2);
  EXPECT_EQ(replies_to(3), "b0");
}

TEST_F(StoreTest, AnItemWhoseWaiterCancelsWakesTheNext) {
  for (uint64_t s : {2u, 3u}) list(s, Op::Wait, {"/q"});
  write(1, Op::QueuePush, "/q", "x");
  EXPECT_EQ(bare(2, Op::CancelWait), "b0 b1");
  EXPECT_EQ(replies_to(3), "b0");
}

TEST_F(StoreTest, ABarrierOpensForAllWithTheLastArrival) {
  EXPECT_EQ(number(2, Op::Barrier, "/b", 3), "");
  EXPECT_EQ(number(3, Op::Barrier, "/b", 3), "");
  EXPECT_EQ(number(4, Op::Barrier, "/b", 3), "b0");
  EXPECT_EQ(replies_to(2), "b0");
  EXPECT_EQ(replies_to(3), "b0");
  EXPECT_EQ(number(5, Op::Barrier, "/b", 3), "b0") << "it never closes again";
}

TEST_F(StoreTest, ABarrierOfOneOrLessIsOpen) {
  EXPECT_EQ(number(2, Op::Barrier, "/a", 1), "b0");
  EXPECT_EQ(number(2, Op::Barrier, "/b", 0), "b0");
}

TEST_F(StoreTest, ABarriersCountIsAnOrdinaryKey) {
  list(9, Op::Wait, {"/b"});
  number(2, Op::Barrier, "/b", 3);
  EXPECT_EQ(replies_to(9), "b0") << "the key exists now";
  EXPECT_EQ(replies_to(2), "");
  EXPECT_EQ(get("/b"), "'1'");
  set(1, "/b", "0");
  EXPECT_EQ(replies_to(2), "b0");
}

TEST_F(StoreTest, ACancelledArrivalStaysCounted) {
  number(2, Op::Barrier, "/b", 2);
  EXPECT_EQ(bare(2, Op::CancelWait), "b1");
  EXPECT_EQ(number(3, Op::Barrier, "/b", 2), "b0");
  EXPECT_EQ(replies_to(2), "");
}

TEST_F(StoreTest, ABarrierOnTextEndsTheSession) {
  set(1, "/b", "text");
  EXPECT_EQ(number(2, Op::Barrier, "/b", 2), "refused");
}

TEST_F(StoreTest, APushWakesNoBarrier) {
  number(2, Op::Barrier, "/b", 2);
  write(1, Op::QueuePush, "/b", "x");
  EXPECT_EQ(replies_to(2), "");
}

}  // namespace
}  // namespace cpprun
