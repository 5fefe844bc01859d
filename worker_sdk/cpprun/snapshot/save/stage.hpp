// Staging: copies the contents of a snapshot into memory that training does not change, for the
// writing thread. Training waits meanwhile. Private to snapshot.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "cpprun/snapshot/save/shard_plan.hpp"
#include "cpprun/snapshot/state/state_layout.hpp"
#include "snapshot_files/archive/plan.hpp"

namespace cpprun::snapshot {

struct StagedFile {
  std::string name;  // "model.pt"
  pickle::Value value;
  std::vector<archive::StorageSize> storages;
  std::vector<ShardRange> parts;
  // One for each of `parts`: its bytes in a slot of the arena; empty if another rank writes it.
  std::vector<archive::ConstBytes> mine;
  // One for each of `mine`. The copy sets some; InMemorySnapshot::write_index() sets the others.
  std::vector<std::optional<uint32_t>> crc32s;

  // The bytes of a storage that is one part of this rank, and their crc32.
  archive::Content whole(std::string_view storage) const;
};

struct Staged {
  int64_t step = 0;
  int64_t epoch = 0;
  std::vector<StagedFile> shared;  // the same on all ranks
  StagedFile own;                  // of this rank
};

// Divides the shared storages among `writers`; copies no bytes yet (`mine` stays empty).
Staged plan(Contents& contents, int writers);
// Bytes of memory that the writer with index `place` (-1: not a writer) needs for its parts.
uint64_t bytes_of(const Staged& staged, int place);
// Copies the writer's parts into `memory`, aligned to archive::kBlock (large parts) or 64 bytes.
// Sets `mine`, and `crc32s` where the copy computes them.
void copy(const Contents& contents, int place, std::span<std::byte> memory, Staged& staged);

}  // namespace cpprun::snapshot
