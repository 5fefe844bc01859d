// Staged: the copied state of one step, which the writing thread writes. Private to snapshot.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cpprun/snapshot/save/shard_plan.hpp"
#include "snapshot_files/archive/bytes.hpp"
#include "snapshot_files/archive/plan.hpp"
#include "snapshot_files/pickle/value.hpp"

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

}  // namespace cpprun::snapshot
