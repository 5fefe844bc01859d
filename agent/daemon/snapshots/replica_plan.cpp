#include "agent/daemon/snapshots/replica_plan.hpp"

#include <algorithm>
#include <iterator>
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

// The shards of the newest save that has one for each of `ranks` ranks, in the order of the ranks;
// empty if there is none. Of two shards of one rank the later one counts.
std::vector<ShardId> newest_complete(const std::vector<ShardId>& shards, size_t ranks) {
  std::map<Save, std::map<int, ShardId>> saves;  // the shards of each save by rank
  for (const ShardId& shard : shards) {
    const auto [at, is_new] = saves[save_of(shard)].emplace(shard.label.rank, shard);
    if (!is_new && at->second.number < shard.number) at->second = shard;
  }
  for (auto save = saves.rbegin(); save != saves.rend(); ++save) {
    if (save->second.size() != ranks) continue;
    std::vector<ShardId> all;
    for (const auto& [rank, shard] : save->second) all.push_back(shard);
    return all;
  }
  return {};
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
  std::vector<ShardId> newest = newest_complete(theirs, arenas.size());
  const bool is_held = std::ranges::all_of(newest, [&](const ShardId& shard) {
    return std::ranges::any_of(held, [&](const ShardId& copy) { return is_same(copy, shard); });
  });
  if (is_held) newest.clear();
  return newest;
}

std::vector<ShardId> shards_to_restore(const std::vector<ShardId>& replicas,
                                       const OwnRanks& ranks) {
  std::vector<ShardId> of_ranks;
  std::ranges::copy_if(replicas, std::back_inserter(of_ranks),
                       [&](const ShardId& shard) { return is_own(shard, ranks); });
  return newest_complete(of_ranks, static_cast<size_t>(ranks.count));
}

uint64_t left_out(const std::vector<ShardId>& before, const std::vector<ShardId>& now) {
  if (before.empty() || now.empty()) return 0;
  const uint64_t from = before.front().number, to = now.front().number;
  return to > from ? to - from - 1 : 0;
}

}  // namespace cpprun
