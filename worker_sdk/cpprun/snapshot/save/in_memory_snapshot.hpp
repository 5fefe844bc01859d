// InMemorySnapshot: the staged state in a slot of this rank's arena, with an index, so that whoever
// is started next can resume from it. Private to snapshot.
//
// A slot holds what its rank staged: its parts of the shared files, its own file, and the trees of
// all files. The ranks of a group have everything together. Bytes of slots are taken for hostile.
//
// A rank has one arena that outlives it. It is for the Snapshots of one place, the first that asks;
// others have memory of their own, which nobody resumes from. A slot says whose it is.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "common/result.hpp"
#include "cpprun/snapshot/save/staged.hpp"
#include "cpprun/snapshot/snapshot_comm.hpp"
#include "cpprun/snapshot/state/state_layout.hpp"
#include "cpprun/worker/arena.hpp"
#include "snapshot_files/folders/arena_slots.hpp"

namespace cpprun::snapshot {

// Where a rank of this node is found; none: it is on another.
struct NodeRanks {
  int first_rank = 0;  // of this node
  int count = 1;
  std::optional<int> local_rank_of(int rank) const {
    if (rank < first_rank || rank >= first_rank + count) return std::nullopt;
    return rank - first_rank;
  }
};

class InMemorySnapshot {
 public:
  // `owner` says where the Snapshot lies, in the same words in every process.
  explicit InMemorySnapshot(std::string owner) : owner_(std::move(owner)) {}

  // Room for the parts of `staged`, whose `bytes` stage::bytes_of says; the index is written behind
  // them. Error: there is no memory.
  Result<std::span<std::byte>> begin(const snapshot_files::SlotLabel& label, const Staged& staged,
                                     uint64_t bytes);
  // By the writing thread: what begin() gave is filled, as `staged` says, whose crc32s this finds.
  // Then, when all ranks have come so far: it counts.
  void write_index(Staged& staged);
  void complete(int64_t step);

  // The newest complete or staged slots of this rank, of a world of this shape.
  std::vector<snapshot_files::SlotLabel> found(int rank, int world);
  // Verifies this rank's slot. Error: why it can't be used.
  Status verify(const snapshot_files::SlotLabel& label);
  // All files, from the slots of all `members`, each verified by its own rank. What is returned
  // refers to their arenas, which it keeps.
  Result<Loaded> load(const snapshot_files::SlotLabel& label, const Group& group,
                      const NodeRanks& neighbours);

 private:
  Status grow(size_t bytes);
  Status open(size_t bytes);

  const std::string owner_;
  std::optional<worker::Arena> arena_;
  std::optional<snapshot_files::ArenaSlots> slots_;
  std::span<std::byte> begun_;
  std::set<const std::byte*> seen_;  // slots that this process has used, by where they begin
};

}  // namespace cpprun::snapshot
