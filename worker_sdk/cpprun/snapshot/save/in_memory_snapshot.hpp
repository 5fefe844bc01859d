// InMemorySnapshot: keeps the staged state and an index of it in a slot of this rank's arena, so
// that the restarted worker can resume from it. Private to snapshot.
//
// A slot holds what its rank staged: its parts of the shared files, its own file, and the value
// trees of all files. Together the slots of a node hold everything that its ranks resume from.
// Readers validate every byte of a slot, because another process may have written it.
//
// A rank has one arena that outlives its process. The first location (folder or file) of which a
// process makes a Snapshot gets this arena; Snapshots of other locations use memory that ends with
// the process. Each slot names its owner.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "common/result.hpp"
#include "cpprun/snapshot/save/stage.hpp"
#include "cpprun/snapshot/snapshot_comm.hpp"
#include "cpprun/worker/arena.hpp"
#include "snapshot_files/folders/arena_slots.hpp"

namespace cpprun::snapshot {

// One thread at a time.
class InMemorySnapshot {
 public:
  // `owner` identifies the location of the Snapshot; equal in all processes and runs. `serves`:
  // the Snapshot may be resumed from memory.
  InMemorySnapshot(std::string owner, bool serves) : owner_(std::move(owner)), serves_(serves) {}

  // Whether a restarted worker may resume from it.
  bool is_lasting() const;
  // Whether a save that is not written to disk serves a restarted worker. `written_at`: the offset
  // of a slot that is being written to disk, which must stay meanwhile.
  bool can_keep(std::optional<size_t> written_at) const;

  // Returns memory for the parts of `staged`, of `bytes` bytes (see bytes_of() in stage.hpp), and
  // reserves room for the index behind it. Sets the slot and the arena of `staged`. `written_at`:
  // as for can_keep(). Error: no memory, or no room beside the slot that is being written to disk.
  Result<std::span<std::byte>> begin(const snapshot_files::SlotLabel& label, Staged& staged,
                                     uint64_t bytes, std::optional<size_t> written_at = {});
  // Call write_index() once the memory of begin() is filled; this also sets the missing crc32s of
  // `staged`. When all ranks have done so, complete() makes the slot the one to resume from.
  void write_index(Staged& staged);
  void complete(int64_t step);

  // The complete or staged slots of this rank, from a world of `world` ranks.
  std::vector<snapshot_files::SlotLabel> found(int rank, int world);
  // Checks the crc32 of this rank's slot. Error: why the slot cannot be used.
  Status verify(const snapshot_files::SlotLabel& label);
  // All files, read from the slots of this node's members of `group`. Each must have verified its
  // own slot. The result keeps the arenas of other ranks open and refers to this object's arena.
  Result<Loaded> load(const snapshot_files::SlotLabel& label, const Group& group,
                      const NodeRanks& neighbours);

 private:
  Status open(size_t bytes);

  const std::string owner_;
  const bool serves_;
  std::shared_ptr<worker::Arena> arena_;  // a Staged shares it
  std::optional<snapshot_files::ArenaSlots> slots_;
  std::span<std::byte> begun_;
  std::set<const std::byte*> seen_;  // addresses of slots that this process has used
};

}  // namespace cpprun::snapshot
