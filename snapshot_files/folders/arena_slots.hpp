// ArenaSlots: two slots for one rank's shard of a snapshot, in memory that may outlive this
// process. While one slot is written, the other keeps the last complete shard.
//
// It neither maps the memory (worker/arena.hpp) nor coordinates ranks: the caller calls complete()
// once all ranks have staged a step. The memory is untrusted: its writer may have been killed in
// the middle, and other processes may write meanwhile. So sizes are checked before use, and the
// content is valid only if the caller finds that its crc32 matches. One thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "common/result.hpp"

namespace cpprun::snapshot_files {

// Identifies the content of a slot.
struct SlotLabel {
  int64_t step = 0;
  int64_t round = 0;
  int rank = 0;
  int world_size = 1;
  bool operator==(const SlotLabel&) const = default;
};

struct Slot {
  size_t index = 0;  // in the arena: 0 or 1
  SlotLabel label;
  uint64_t number = 0;                 // grows with each begin() in this memory
  uint32_t crc32 = 0;                  // of `content`, according to its writer
  bool is_complete = false;            // all ranks have staged this step, not only this one
  std::span<const std::byte> content;  // within the given memory
};

// The staged and complete slots of an arena, the last one begun first. Accepts any memory and skips
// invalid slots.
std::vector<Slot> slots_of(std::span<const std::byte> arena);

class ArenaSlots {
 public:
  // The size of an arena for two slots of `bytes` each.
  static size_t arena_bytes(size_t bytes);

  // Slots of an earlier process stay until they are overwritten. Requires: `arena` is aligned
  // to 64.
  explicit ArenaSlots(std::span<std::byte> arena) : arena_(arena) {}

  // Returns memory of `bytes` bytes to fill; call staged() then. The newest complete slot stays,
  // unless the arena is too small for both. `needed_at`: the offset of a slot that another thread
  // still reads. Error (BadValue): the arena is too small even for this slot, or this slot would
  // replace the needed one; nothing has changed.
  Result<std::span<std::byte>> begin(const SlotLabel& label, size_t bytes,
                                     std::optional<size_t> needed_at = {});
  // Marks the slot from begin() as filled. Requires begin().
  void staged(uint32_t crc32);
  // Marks the staged slot of this step as complete; an earlier process may have staged it. False:
  // there is none. Requires: all ranks have staged this step.
  bool complete(int64_t step);
  // The complete slot that was begun last.
  std::optional<Slot> newest() const;
  // Where a slot begins in the arena, for begin().
  size_t offset_of(std::span<const std::byte> content) const {
    return static_cast<size_t>(content.data() - arena_.data());
  }

 private:
  std::span<std::byte> arena_;
  std::optional<size_t> begun_;  // index of the slot from begin()
};

}  // namespace cpprun::snapshot_files
