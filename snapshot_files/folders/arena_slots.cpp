#include "snapshot_files/folders/arena_slots.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <functional>
#include <limits>
#include <string>

#include "common/check.hpp"

namespace cpprun::snapshot_files {
namespace {

constexpr uint64_t kMagic = 0x31544f4c53525043;  // "CPRSLOT1"
constexpr size_t kAlignment = 64;
constexpr int64_t kMany = std::numeric_limits<int>::max();

enum State : uint64_t { Empty = 0, Writing = 1, Staged = 2, Complete = 3 };

// The layout in shared memory. Fields are loaded and stored atomically; `state` guards the others.
struct Record {
  std::atomic<uint64_t> state, number, offset, bytes, crc32;
  std::atomic<int64_t> step, round, rank, world_size;
};
struct Head {
  std::atomic<uint64_t> magic;
  alignas(64) std::array<Record, 2> records;
};
constexpr size_t kHeadBytes = 4096;
static_assert(sizeof(Head) <= kHeadBytes && std::atomic<uint64_t>::is_always_lock_free);

size_t rounded(size_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

template <class T>
T now(const std::atomic<T>& field) {
  return field.load(std::memory_order_relaxed);
}
template <class T, class V>
void set(std::atomic<T>& field, V value) {
  field.store(static_cast<T>(value), std::memory_order_relaxed);
}

const Head* head_of(std::span<const std::byte> arena) {
  if (arena.size() < kHeadBytes) return nullptr;
  CPPRUN_CHECK(reinterpret_cast<uintptr_t>(arena.data()) % kAlignment == 0);
  return reinterpret_cast<const Head*>(arena.data());
}

constexpr uint64_t kNumberMax = uint64_t{1} << 62;  // larger ones are corrupt: unreachable

bool is_valid(const SlotLabel& label, int64_t rank, int64_t world_size) {
  return label.step >= 0 && world_size >= 1 && world_size <= kMany && rank >= 0 &&
         rank < world_size;
}

// Reads every field once and checks the copies: other processes may write meanwhile.
std::optional<Slot> read_slot(std::span<const std::byte> arena, const Head& head, size_t index) {
  const Record& record = head.records[index];
  const uint64_t state = record.state.load(std::memory_order_acquire);
  if (state != Staged && state != Complete) return std::nullopt;
  const uint64_t offset = now(record.offset), bytes = now(record.bytes);
  const uint64_t crc32 = now(record.crc32);
  const int64_t rank = now(record.rank), world_size = now(record.world_size);
  Slot slot;
  slot.index = index;
  slot.label.step = now(record.step);
  slot.label.round = now(record.round);
  slot.number = now(record.number);
  slot.is_complete = state == Complete;
  const bool is_inside =
      offset >= kHeadBytes && offset <= arena.size() && bytes <= arena.size() - offset;
  const bool is_good = is_inside && is_valid(slot.label, rank, world_size) &&
                       crc32 <= std::numeric_limits<uint32_t>::max() && slot.number < kNumberMax;
  std::atomic_thread_fence(std::memory_order_acquire);
  if (!is_good || now(record.state) != state) return std::nullopt;
  slot.label.rank = static_cast<int>(rank);
  slot.label.world_size = static_cast<int>(world_size);
  slot.crc32 = static_cast<uint32_t>(crc32);
  slot.content = arena.subspan(offset, bytes);
  return slot;
}

// The offset of a slot of `bytes` beside `kept`: at the front or at the very end, so that the free
// space stays contiguous.
std::optional<size_t> place_beside(const Slot& kept, std::span<const std::byte> arena,
                                   size_t bytes) {
  const auto from = static_cast<size_t>(kept.content.data() - arena.data());
  const size_t to = rounded(from + kept.content.size());
  if (from >= kHeadBytes + bytes) return kHeadBytes;
  const size_t end = arena.size() / kAlignment * kAlignment;
  if (end >= to && end - to >= bytes) return end - bytes;
  return std::nullopt;
}

Head& formatted(std::span<std::byte> arena) {
  auto* head = reinterpret_cast<Head*>(arena.data());
  if (head->magic.load(std::memory_order_acquire) != kMagic) {
    for (Record& record : head->records) set(record.state, Empty);
    head->magic.store(kMagic, std::memory_order_release);
  }
  return *head;
}

void write(Record& record, const SlotLabel& label, uint64_t number, size_t offset, size_t bytes) {
  set(record.number, number);
  set(record.offset, offset);
  set(record.bytes, bytes);
  set(record.step, label.step);
  set(record.round, label.round);
  set(record.rank, label.rank);
  set(record.world_size, label.world_size);
  record.state.store(Writing, std::memory_order_release);
}

}  // namespace

std::vector<Slot> slots_of(std::span<const std::byte> arena) {
  std::vector<Slot> slots;
  const Head* head = head_of(arena);
  if (head == nullptr || head->magic.load(std::memory_order_acquire) != kMagic) return slots;
  slots.reserve(head->records.size());
  for (size_t index = 0; index < head->records.size(); ++index) {
    if (const auto slot = read_slot(arena, *head, index)) slots.push_back(*slot);
  }
  std::ranges::sort(slots, std::greater(), &Slot::number);
  return slots;
}

size_t ArenaSlots::arena_bytes(size_t bytes) { return kHeadBytes + 2 * rounded(bytes); }

Result<std::span<std::byte>> ArenaSlots::begin(const SlotLabel& label, size_t bytes,
                                               std::optional<size_t> needed_at) {
  CPPRUN_CHECK(is_valid(label, label.rank, label.world_size));
  const size_t whole = arena_.size() / kAlignment * kAlignment;
  if (whole < kHeadBytes || bytes > whole - kHeadBytes) {
    return Error{ErrorKind::BadValue, "an arena of " + std::to_string(arena_.size()) +
                                          " bytes has no room for " + std::to_string(bytes)};
  }
  Head& head = formatted(arena_);
  const std::vector<Slot> slots = slots_of(arena_);
  const std::optional<Slot> kept = newest();
  std::optional<size_t> offset;
  if (kept) offset = place_beside(*kept, arena_, rounded(bytes));
  const bool keeps_needed = offset && offset_of(kept->content) == needed_at;
  if (needed_at && !keeps_needed) {
    return Error{ErrorKind::BadValue, "there is no room beside the slot that is still read"};
  }
  const uint64_t number = slots.empty() ? 1 : slots.front().number + 1;
  begun_ = kept && offset ? 1 - kept->index : 0;
  // Before any other field or the content changes: the slot must not look complete meanwhile.
  head.records[*begun_].state.exchange(Empty, std::memory_order_acq_rel);
  if (!offset) head.records[1].state.exchange(Empty, std::memory_order_acq_rel);
  write(head.records[*begun_], label, number, offset.value_or(kHeadBytes), bytes);
  return arena_.subspan(offset.value_or(kHeadBytes), bytes);
}

void ArenaSlots::staged(uint32_t crc32) {
  CPPRUN_CHECK(begun_.has_value());
  Record& record = formatted(arena_).records[*begun_];
  set(record.crc32, crc32);
  record.state.store(Staged, std::memory_order_release);
  begun_.reset();
}

bool ArenaSlots::complete(int64_t step) {
  for (const Slot& slot : slots_of(arena_)) {
    if (slot.label.step != step) continue;
    formatted(arena_).records[slot.index].state.store(Complete, std::memory_order_release);
    return true;
  }
  return false;
}

std::optional<Slot> ArenaSlots::newest() const {
  for (const Slot& slot : slots_of(arena_)) {
    if (slot.is_complete) return slot;
  }
  return std::nullopt;
}

}  // namespace cpprun::snapshot_files
