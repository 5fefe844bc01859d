// ArenaSlots: two places for one rank's share of a snapshot in memory that may outlive this
// process: while one is written, the other keeps the last that was complete.
//
// Not the memory itself (worker/arena.hpp) and no agreement: whoever knows that all ranks have
// staged a step says complete(). Whatever stands in the memory is taken for hostile: its writer may
// have been killed in the middle, and other processes may write meanwhile. So sizes are judged
// before anything is looked at, and the content is whole only if its crc32 says so, which is the
// caller's to compute. One thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "common/result.hpp"

namespace cpprun::snapshot_files {

// What a slot is about.
struct SlotLabel {
  int64_t step = 0;
  int64_t round = 0;
  int rank = 0;
  int world_size = 1;
  bool operator==(const SlotLabel&) const = default;
};

struct Slot {
  SlotLabel label;
  uint64_t number = 0;                 // grows with each begin() in this memory
  uint32_t crc32 = 0;                  // of `content`, as its writer said
  bool is_complete = false;            // all ranks had staged it; otherwise only this one
  std::span<const std::byte> content;  // within the memory that was given
};

// The staged and the complete slots of an arena, the last begun first. Any memory will do; what
// makes no sense is left out.
std::vector<Slot> slots_of(std::span<const std::byte> arena);

class ArenaSlots {
 public:
  // How large an arena must be for two slots of `bytes` each.
  static size_t arena_bytes(size_t bytes);

  // What an earlier process left in the memory stays until it is written over. Requires: it begins
  // at a multiple of 64.
  explicit ArenaSlots(std::span<std::byte> arena) : arena_(arena) {}

  // Room for `bytes`, to be filled and then staged(). The newest complete slot stays, unless the
  // arena is too small for both. Error (BadValue): it is too small for this one alone; nothing has
  // changed then.
  Result<std::span<std::byte>> begin(const SlotLabel& label, size_t bytes);
  // What begin() gave is filled. Requires begin().
  void staged(uint32_t crc32);
  // All ranks have staged this step: marks the staged slot of it, which may be that of an earlier
  // process. False: there is none.
  bool complete(int64_t step);
  // Forgets all slots.
  void clear();

  // The complete slot that was begun last.
  std::optional<Slot> newest() const;

 private:
  std::span<std::byte> arena_;
  std::optional<size_t> begun_;  // which slot
};

}  // namespace cpprun::snapshot_files
