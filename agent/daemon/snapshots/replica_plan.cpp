#include "agent/daemon/snapshots/replica_plan.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

namespace cpprun {
namespace {

// Ordered by round, then by step; the newest is last. Another world size makes another save.
using Save = std::tuple<int64_t, int64_t, int>;  // round, step, world size

Save save_of(const ShardId& name) {
  return {name.label.round, name.label.step, name.label.world_size};
}

// The shards of each save by arena. Of two shards in one arena the later one counts.
using Saves = std::map<Save, std::map<int, ShardId>>;

Saves saves_of(const std::vector<ShardId>& shards) {
  Saves saves;
  for (const ShardId& shard : shards) {
    const auto [at, is_new] = saves[save_of(shard)].emplace(shard.index, shard);
    if (!is_new && at->second.number < shard.number) at->second = shard;
  }
  return saves;
}

bool is_same(const ShardId& a, const ShardId& b) {
  return a.label == b.label && a.crc32 == b.crc32 && a.bytes == b.bytes;
}

bool is_own(const ShardId& shard, const OwnRanks& ranks) {
  return shard.label.world_size == ranks.world_size && shard.label.rank >= ranks.first &&
         shard.label.rank < ranks.first + ranks.count;
}

}  // namespace

std::vector<ShardId> shards_to_copy(const std::vector<ShardId>& theirs,
                                    const std::vector<ShardId>& held) {
  std::set<int> arenas;
  for (const ShardId& shard : theirs) arenas.insert(shard.index);
  const Saves saves = saves_of(theirs);
  for (auto save = saves.rbegin(); save != saves.rend(); ++save) {
    if (save->second.size() != arenas.size()) continue;
    std::vector<ShardId> all;
    for (const auto& [index, shard] : save->second) all.push_back(shard);
    const bool is_held = std::all_of(all.begin(), all.end(), [&](const ShardId& shard) {
      return std::any_of(held.begin(), held.end(),
                         [&](const ShardId& copy) { return is_same(copy, shard); });
    });
    return is_held ? std::vector<ShardId>() : all;
  }
  return {};
}

std::vector<ShardId> shards_to_restore(const std::vector<ShardId>& replicas,
                                       const OwnRanks& ranks) {
  std::vector<ShardId> of_ranks;
  for (ShardId shard : replicas) {
    shard.index = shard.label.rank - ranks.first;
    if (is_own(shard, ranks)) of_ranks.push_back(shard);
  }
  const Saves saves = saves_of(of_ranks);
  for (auto save = saves.rbegin(); save != saves.rend(); ++save) {
    if (save->second.size() != static_cast<size_t>(ranks.count)) continue;
    std::vector<ShardId> all;
    for (const auto& [index, shard] : save->second) all.push_back(shard);
    return all;
  }
  return {};
}

bool has_own(const std::vector<ShardId>& own, const OwnRanks& ranks) {
  return !shards_to_restore(own, ranks).empty();
}

uint64_t left_out(const std::vector<ShardId>& before, const std::vector<ShardId>& now) {
  if (before.empty() || now.empty()) return 0;
  const uint64_t from = before.front().number, to = now.front().number;
  return to > from ? to - from - 1 : 0;
}

}  // namespace cpprun
