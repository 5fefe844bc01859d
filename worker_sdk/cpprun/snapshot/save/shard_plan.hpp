// Who of several writers writes which part of a file's storages. Pure. Private to snapshot.
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
  int writer = 0;      // place among the writers
  bool operator==(const ShardRange&) const = default;
};

// All bytes of all storages, each in one part, in the order given; parts of one storage ascend.
// Writers get equal shares, but for blocks: large storages are cut at multiples of archive::kBlock,
// small ones not at all.
std::vector<ShardRange> plan_shards(const std::vector<ShardSource>& storages, int writers);

}  // namespace cpprun::snapshot
