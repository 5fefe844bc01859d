// Divides the storages of a file into pieces of equal size. Pure. Private to snapshot.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace cpprun::snapshot {

struct ShardSource {
  std::string name;
  uint64_t bytes = 0;
  bool is_leaders = false;  // the leader's: it belongs to the first piece
};

struct ShardRange {
  std::string storage;
  uint64_t from = 0;   // bytes into the storage
  uint64_t bytes = 0;  // 0 only of an empty storage
  int piece = 0;
  bool operator==(const ShardRange&) const = default;
};

// Each byte of each storage is in exactly one part. Parts are in the order of the storages, those
// of one storage ascending. Pieces are equal up to a block: large storages are cut at multiples of
// archive::kBlock, small ones are not cut.
std::vector<ShardRange> plan_shards(const std::vector<ShardSource>& storages, int pieces);

}  // namespace cpprun::snapshot
