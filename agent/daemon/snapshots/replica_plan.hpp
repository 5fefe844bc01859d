// Decides which shards an agent replicates from its neighbour, and which it restores from it
// (--snapshot-replicas). Pure functions of the shards' names.
//
// Shards are useful only as a set: one save, all ranks of a node.
#pragma once

#include <vector>

#include "agent/daemon/snapshots/shards.hpp"

namespace cpprun {

// The shards to replicate of a neighbour's shards `theirs`: the newest save with a complete shard
// in each of its arenas. Empty if there is none, or if `held` contains replicas of it already.
std::vector<ShardId> shards_to_copy(const std::vector<ShardId>& theirs,
                                    const std::vector<ShardId>& held);

// The ranks of a node.
struct OwnRanks {
  int first = 0;
  int count = 1;
  int world_size = 1;
};
// The newest save among `replicas` with a shard for each of these ranks, in the order of the ranks.
// Empty if there is none.
std::vector<ShardId> shards_to_restore(const std::vector<ShardId>& replicas, const OwnRanks& ranks);

// Number of saves between two that were replicated.
uint64_t left_out(const std::vector<ShardId>& before, const std::vector<ShardId>& now);

}  // namespace cpprun
