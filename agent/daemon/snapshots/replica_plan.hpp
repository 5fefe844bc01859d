// Which shards an agent replicates from its neighbour, and which it takes back from it. Pure
// functions of the shards' names; --snapshot-replicas.
//
// Shards are of use only together: all ranks of a node, of one save.
#pragma once

#include <vector>

#include "agent/daemon/snapshots/shards.hpp"

namespace cpprun {

// What a neighbour has, `theirs`, as far as it is to be copied: its newest save of which the shard
// of every one of its arenas is complete. Empty: there is none, or its replicas are among `held`.
std::vector<ShardId> shards_to_copy(const std::vector<ShardId>& theirs,
                                    const std::vector<ShardId>& held);

// Which ranks a node runs.
struct OwnRanks {
  int first = 0;
  int count = 1;
  int world_size = 1;
};
// Of the replicas that a neighbour holds the newest that has a shard for each of these ranks, in
// their order; `index` of each is the local rank. Empty: there is none.
std::vector<ShardId> shards_to_restore(const std::vector<ShardId>& replicas, const OwnRanks& ranks);

// Some save of which this node has the shards of all these ranks is here already.
bool has_own(const std::vector<ShardId>& own, const OwnRanks& ranks);

// How many saves came between two that were copied.
uint64_t left_out(const std::vector<ShardId>& before, const std::vector<ShardId>& now);

}  // namespace cpprun
