// Two slots in an arena: which one stays during a write, and hostile memory.
#include "snapshot_files/folders/arena_slots.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <random>

namespace cpprun::snapshot_files {
namespace {

struct Free {
  void operator()(std::byte* memory) const { std::free(memory); }
};

class ArenaSlotsTest : public testing::Test {
 protected:
  explicit ArenaSlotsTest(size_t bytes = ArenaSlots::arena_bytes(1000)) { resize(bytes); }

  void resize(size_t bytes) {
    auto* fresh = static_cast<std::byte*>(std::aligned_alloc(64, (bytes + 63) / 64 * 64));
    std::memset(fresh, 0, bytes);
    if (memory_) std::memcpy(fresh, memory_.get(), std::min(bytes, arena_.size()));
    memory_.reset(fresh);
    arena_ = {fresh, bytes};
  }
  // The view of the next process, or of another rank.
  std::vector<Slot> slots() const { return slots_of(arena_); }
  std::optional<int64_t> newest() const {
    const std::optional<Slot> slot = ArenaSlots(arena_).newest();
    if (!slot) return std::nullopt;
    return slot->label.step;
  }
  std::vector<int64_t> steps() const {
    std::vector<int64_t> found;
    for (const Slot& slot : slots()) found.push_back(slot.label.step);
    return found;
  }

  // Every byte of a shard equals its step.
  void fill(std::span<std::byte> room, int64_t step) const {
    std::memset(room.data(), static_cast<int>(step), room.size());
  }
  bool is_intact(const Slot& slot) const {
    for (std::byte b : slot.content) {
      if (b != static_cast<std::byte>(slot.label.step)) return false;
    }
    return true;
  }
  ArenaSlots begun(int64_t step, size_t bytes = 1000) const {
    ArenaSlots mine(arena_);
    auto room = mine.begin({step, 7, 1, 2}, bytes);
    EXPECT_TRUE(room.ok()) << room.error().text;
    if (room) fill(*room, step);
    return mine;
  }
  void save(int64_t step, size_t bytes = 1000) const {
    ArenaSlots mine = begun(step, bytes);
    mine.staged(static_cast<uint32_t>(step) * 3);
    EXPECT_TRUE(mine.complete(step));
  }

  std::unique_ptr<std::byte, Free> memory_;
  std::span<std::byte> arena_;
};

TEST_F(ArenaSlotsTest, FreshMemoryHoldsNothing) {
  EXPECT_TRUE(slots().empty());
  EXPECT_FALSE(newest().has_value());
  EXPECT_FALSE(ArenaSlots(arena_).complete(1));
}

TEST_F(ArenaSlotsTest, TheNextProcessFindsACompleteSlot) {
  save(10, 777);
  ASSERT_EQ(slots().size(), 1u);
  const Slot slot = slots()[0];
  EXPECT_EQ(slot.label.step, 10);
  EXPECT_EQ(slot.label.round, 7);
  EXPECT_EQ(slot.label.rank, 1);
  EXPECT_EQ(slot.label.world_size, 2);
  EXPECT_EQ(slot.crc32, 30u);
  EXPECT_TRUE(slot.is_complete);
  EXPECT_EQ(slot.content.size(), 777u);
  EXPECT_TRUE(is_intact(slot));
}

TEST_F(ArenaSlotsTest, TheLastCompleteSlotStaysDuringAWrite) {
  for (int64_t step = 1; step < 9; ++step) {
    save(step);
    begun(step + 1);  // and here its writer dies
    EXPECT_EQ(steps(), std::vector<int64_t>{step});
    EXPECT_TRUE(is_intact(slots()[0])) << step;
  }
}

TEST_F(ArenaSlotsTest, AStagedSlotIsNotComplete) {
  save(1);
  begun(2).staged(6);
  EXPECT_EQ(steps(), (std::vector<int64_t>{2, 1}));
  EXPECT_FALSE(slots()[0].is_complete);
  EXPECT_EQ(newest(), 1);
  // The other ranks had it complete, so the next process treats it as complete.
  EXPECT_TRUE(ArenaSlots(arena_).complete(2));
  EXPECT_EQ(newest(), 2);
  EXPECT_FALSE(ArenaSlots(arena_).complete(3));
}

// A job that goes back to an older snapshot saves the same steps again; the later write counts.
TEST_F(ArenaSlotsTest, ALaterWritePrecedesALargerStep) {
  save(20);
  save(10);
  EXPECT_EQ(newest(), 10);
  EXPECT_EQ(steps(), (std::vector<int64_t>{10, 20}));
}

TEST_F(ArenaSlotsTest, AnArenaForOneSlotKeepsNothingDuringAWrite) {
  resize(ArenaSlots::arena_bytes(1000) - 64);
  save(1);
  ArenaSlots next = begun(2);
  EXPECT_TRUE(slots().empty());
  next.staged(6);
  EXPECT_TRUE(next.complete(2));
  EXPECT_EQ(newest(), 2);
  EXPECT_TRUE(is_intact(slots()[0]));
}

// Another thread writes a slot to disk while the next one is begun.
TEST_F(ArenaSlotsTest, ASlotThatIsReadStays) {
  save(1);
  ArenaSlots mine(arena_);
  const size_t first = mine.offset_of(slots()[0].content);
  EXPECT_TRUE(mine.begin({2, 7, 1, 2}, 1000, first).ok());
  mine.staged(6);
  mine.complete(2);
  // The newest one would stay, and the one that is read be replaced.
  EXPECT_FALSE(mine.begin({3, 7, 1, 2}, 1000, first).ok());
  EXPECT_EQ(steps(), (std::vector<int64_t>{2, 1}));
  // There is room for one of them only.
  const size_t second = mine.offset_of(slots()[0].content);
  EXPECT_FALSE(mine.begin({3, 7, 1, 2}, 1100, second).ok());
  EXPECT_EQ(steps(), (std::vector<int64_t>{2, 1}));
  EXPECT_TRUE(is_intact(slots()[1]));
}

TEST_F(ArenaSlotsTest, ForgetsAnOverlappedSlot) {
  save(1, 100);
  save(2, 100);
  begun(3, 1950);
  EXPECT_TRUE(slots().empty());
}

TEST_F(ArenaSlotsTest, RejectsAnOversizedWriteAndChangesNothing) {
  save(1);
  for (size_t bytes : {size_t{5000}, SIZE_MAX, SIZE_MAX - 63, SIZE_MAX / 2}) {
    EXPECT_FALSE(ArenaSlots(arena_).begin({2, 7, 0, 1}, bytes).ok());
  }
  EXPECT_EQ(newest(), 1);
  for (size_t size : {0U, 1U, 64U, 4095U}) {
    std::span<std::byte> tiny = arena_.subspan(0, size);
    EXPECT_FALSE(ArenaSlots(tiny).begin({2, 7, 0, 1}, 1).ok());
    EXPECT_TRUE(slots_of(tiny).empty());
  }
  EXPECT_TRUE(is_intact(slots()[0]));
}

TEST_F(ArenaSlotsTest, ALargerArenaKeepsItsSlots) {
  save(1);
  save(2);
  resize(ArenaSlots::arena_bytes(5000));
  EXPECT_EQ(newest(), 2);
  begun(3, 5000);
  EXPECT_EQ(steps(), std::vector<int64_t>{2});
  EXPECT_TRUE(is_intact(slots()[0]));
}

TEST_F(ArenaSlotsTest, WritesOfAnySizeSpareTheKeptSlot) {
  std::mt19937 random(3);
  resize(ArenaSlots::arena_bytes(10'000));
  for (int64_t step = 1; step < 500; ++step) {
    save(step, random() % 10'001);
    begun(step + 1, random() % 10'001);
    ASSERT_EQ(newest(), step);
    ASSERT_TRUE(is_intact(slots()[0])) << step;
  }
}

// Changes random bytes of the header: every slot found lies inside, and new slots work.
TEST_F(ArenaSlotsTest, RejectsHostileMemory) {
  std::mt19937_64 random(5);
  const auto* begin = arena_.data();
  for (int i = 0; i < 20'000; ++i) {
    save(1 + static_cast<int64_t>(random() % 100));
    save(1 + static_cast<int64_t>(random() % 100), 900);
    const int changes = 1 + static_cast<int>(random() % 4);
    for (int n = 0; n < changes; ++n) {
      const uint64_t values[] = {random(), random() % 6000, UINT64_MAX};
      const uint64_t value = values[random() % 3];
      std::memcpy(arena_.data() + random() % 25 * 8, &value, sizeof value);
    }
    for (const Slot& slot : slots()) {
      ASSERT_GE(slot.content.data(), begin + 4096);
      ASSERT_LE(slot.content.data() + slot.content.size(), begin + arena_.size());
      ASSERT_GT(slot.label.world_size, slot.label.rank);
    }
    save(50);
    ASSERT_EQ(newest(), 50);
    ASSERT_TRUE(is_intact(slots()[0]));
  }
}

}  // namespace
}  // namespace cpprun::snapshot_files
