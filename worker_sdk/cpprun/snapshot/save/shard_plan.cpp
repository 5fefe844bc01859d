#include "cpprun/snapshot/save/shard_plan.hpp"

#include <algorithm>

#include "snapshot_files/archive/plan.hpp"

namespace cpprun::snapshot {
namespace {

// Offset of the first byte of `writer` in `total` bytes.
uint64_t begins_at(uint64_t total, int writer, int writers) {
  const auto each = total / static_cast<uint64_t>(writers);
  return each * static_cast<uint64_t>(writer);
}

int writer_of(uint64_t place, uint64_t total, int writers) {
  int writer = 0;
  while (writer + 1 < writers && begins_at(total, writer + 1, writers) <= place) ++writer;
  return writer;
}

}  // namespace

std::vector<ShardRange> plan_shards(const std::vector<ShardSource>& storages, int writers) {
  uint64_t total = 0;
  for (const ShardSource& each : storages) total += each.is_leaders ? 0 : each.bytes;
  std::vector<ShardRange> parts;
  uint64_t place = 0;  // offset in the bytes that are divided among writers
  for (const ShardSource& each : storages) {
    if (each.is_leaders || each.bytes < archive::kBigStorage) {
      const int writer = each.is_leaders ? 0 : writer_of(place, total, writers);
      parts.push_back({each.name, 0, each.bytes, writer});
      place += each.is_leaders ? 0 : each.bytes;
      continue;
    }
    for (uint64_t from = 0; from < each.bytes;) {
      const int writer = writer_of(place + from, total, writers);
      uint64_t end = each.bytes;
      if (writer + 1 < writers) {
        const uint64_t next = begins_at(total, writer + 1, writers) - place;
        end = std::min(end, (next + archive::kBlock - 1) / archive::kBlock * archive::kBlock);
      }
      parts.push_back({each.name, from, end - from, writer});
      from = end;
    }
    place += each.bytes;
  }
  return parts;
}

}  // namespace cpprun::snapshot
