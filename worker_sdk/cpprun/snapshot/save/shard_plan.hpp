// Divides the storages of a file among several writers. Pure. Private to snapshot.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace cpprun::snapshot {

struct ShardSource {
  std::string name;
  uint64_t bytes = 0;
  bool is_leaders = false;  // only the first writer may write it
};

struct ShardRange {
  std::string storage;
  uint64_t from = 0;   // bytes into the storage
  uint64_t bytes = 0;  // 0 only of an empty storage
  int writer = 0;      // index among the writers
  bool operator==(const ShardRange&) const = default;
};

// Each byte of each storage is in exactly one part. Parts are in the order of the storages, those
// of one storage ascending. Writers get equal amounts up to a block: large storages are cut at
// multiples of archive::kBlock, small ones are not cut.
std::vector<ShardRange> plan_shards(const std::vector<ShardSource>& storages, int writers);

}  // namespace cpprun::snapshot
