// Staging: copies the contents of a snapshot into memory that training does not change, for the
// writing thread. Training waits meanwhile. Private to snapshot.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "cpprun/snapshot/save/shard_plan.hpp"
#include "cpprun/snapshot/snapshot_comm.hpp"
#include "cpprun/snapshot/state/state_layout.hpp"
#include "cpprun/worker/arena.hpp"
#include "snapshot_files/archive/plan.hpp"

namespace cpprun::snapshot {

struct StagedFile {
  std::string name;  // "model.pt"
  pickle::Value value;
  std::vector<archive::StorageSize> storages;
  std::vector<ShardRange> parts;
  // One for each of `parts`: its bytes in a slot of the arena; empty if this rank does not keep it.
  std::vector<archive::ConstBytes> mine;
  // One for each of `mine`. The copy sets some; InMemorySnapshot::write_index() sets the others.
  std::vector<std::optional<uint32_t>> crc32s;

  // The bytes of a storage that is one part of this rank, and their crc32.
  archive::Content whole(std::string_view storage) const;
};

struct Staged {
  int64_t step = 0;
  int64_t epoch = 0;
  Share share;                     // of the shared files
  std::vector<StagedFile> shared;  // the same on all ranks
  StagedFile own;                  // of this rank
  // `mine` of the files is in its mapping, which stays if the arena is enlarged meanwhile.
  std::shared_ptr<const worker::Arena> arena;
  size_t slot_at = 0;  // offset of the slot in the arena
};

// Divides the shared storages; copies no bytes yet (`mine` stays empty).
Staged plan(Contents& contents, const Share& share);
// Bytes of memory that the rank needs for the parts that it keeps.
uint64_t bytes_of(const Staged& staged);
// Copies these parts into `memory`, aligned to archive::kBlock (large parts) or 64 bytes. Sets
// `mine`, and `crc32s` where the copy computes them.
void copy(const Contents& contents, std::span<std::byte> memory, Staged& staged);

}  // namespace cpprun::snapshot
