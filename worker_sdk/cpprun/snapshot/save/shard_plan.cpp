#include "cpprun/snapshot/save/shard_plan.hpp"

#include <algorithm>

#include "snapshot_files/archive/plan.hpp"

namespace cpprun::snapshot {
namespace {

// Offset of the first byte of `piece` in `total` bytes.
uint64_t begins_at(uint64_t total, int piece, int pieces) {
  const auto each = total / static_cast<uint64_t>(pieces);
  return each * static_cast<uint64_t>(piece);
}

int piece_of(uint64_t place, uint64_t total, int pieces) {
  int piece = 0;
  while (piece + 1 < pieces && begins_at(total, piece + 1, pieces) <= place) ++piece;
  return piece;
}

}  // namespace

std::vector<ShardRange> plan_shards(const std::vector<ShardSource>& storages, int pieces) {
  uint64_t total = 0;
  for (const ShardSource& each : storages) total += each.is_leaders ? 0 : each.bytes;
  std::vector<ShardRange> parts;
  uint64_t place = 0;  // offset in the bytes that are divided among the pieces
  for (const ShardSource& each : storages) {
    if (each.is_leaders || each.bytes < archive::kBigStorage) {
      const int piece = each.is_leaders ? 0 : piece_of(place, total, pieces);
      parts.push_back({each.name, 0, each.bytes, piece});
      place += each.is_leaders ? 0 : each.bytes;
      continue;
    }
    for (uint64_t from = 0; from < each.bytes;) {
      const int piece = piece_of(place + from, total, pieces);
      uint64_t end = each.bytes;
      if (piece + 1 < pieces) {
        const uint64_t next = begins_at(total, piece + 1, pieces) - place;
        end = std::min(end, (next + archive::kBlock - 1) / archive::kBlock * archive::kBlock);
      }
      parts.push_back({each.name, from, end - from, piece});
      from = end;
    }
    place += each.bytes;
  }
  return parts;
}

}  // namespace cpprun::snapshot
