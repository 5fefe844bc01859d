// The writer of an arena's slots may be killed after any of its instructions: every slot found
// afterwards is complete.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <set>

#include "snapshot_files/folders/arena_slots.hpp"

namespace cpprun::snapshot_files {
namespace {

constexpr size_t kBytes = 64;
constexpr int64_t kFirst = 1, kLast = 6;

// Every byte of a shard equals its step, and so does its crc32.
void save(std::span<std::byte> arena, int64_t step) {
  ArenaSlots slots(arena);
  auto room = slots.begin({step, 1, 0, 1}, kBytes);
  if (!room) ::_exit(1);
  std::memset(room->data(), static_cast<int>(step), room->size());
  slots.staged(static_cast<uint32_t>(step));
  if (!slots.complete(step)) ::_exit(2);
}

bool is_whole(const Slot& slot) {
  const auto wanted = static_cast<std::byte>(slot.label.step);
  return slot.content.size() == kBytes && slot.crc32 == slot.label.step &&
         std::all_of(slot.content.begin(), slot.content.end(),
                     [wanted](std::byte b) { return b == wanted; });
}

pid_t traced_writer(std::span<std::byte> arena) {
  const pid_t child = ::fork();
  if (child != 0) return child;
  if (::ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) != 0) ::_exit(77);
  ::raise(SIGSTOP);
  for (int64_t step = kFirst + 1; step <= kLast; ++step) save(arena, step);
  ::_exit(0);
}

// A writer of `arena` runs one instruction at a time, and the test checks the arena after each.
void watch_writer(std::span<std::byte> arena, bool keeps_one) {
  save(arena, kFirst);
  const pid_t child = traced_writer(arena);
  ASSERT_GT(child, 0);
  int status = 0;
  std::set<int64_t> seen;
  while (::waitpid(child, &status, 0) == child && WIFSTOPPED(status)) {
    const std::vector<Slot> slots = slots_of(arena);
    const bool is_good = std::all_of(slots.begin(), slots.end(), is_whole) &&
                         (!keeps_one || ArenaSlots(arena).newest().has_value());
    for (const Slot& slot : slots) seen.insert(slot.label.step);
    if (!is_good) ::kill(child, SIGKILL);
    ASSERT_TRUE(is_good);
    ::ptrace(PTRACE_SINGLESTEP, child, nullptr, nullptr);
  }
  if (WIFEXITED(status) && WEXITSTATUS(status) == 77) GTEST_SKIP() << "nobody may trace here";
  ASSERT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  EXPECT_EQ(seen.size(), static_cast<size_t>(kLast));
}

std::span<std::byte> shared_memory(size_t bytes) {
  void* at = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  return {static_cast<std::byte*>(at), bytes};
}

TEST(ArenaSlotsCrash, ACrashAtAnyInstructionLeavesOneCompleteSlot) {
  const std::span<std::byte> arena = shared_memory(ArenaSlots::arena_bytes(kBytes));
  watch_writer(arena, true);
  ::munmap(arena.data(), arena.size());
}

TEST(ArenaSlotsCrash, ASingleSlotIsCompleteOrAbsent) {
  const std::span<std::byte> arena = shared_memory(ArenaSlots::arena_bytes(kBytes) - kBytes);
  watch_writer(arena, false);
  ::munmap(arena.data(), arena.size());
}

}  // namespace
}  // namespace cpprun::snapshot_files
