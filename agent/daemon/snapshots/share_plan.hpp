// Which shares an agent copies from its neighbour, and which it takes back from it. Pure functions
// of the shares' names; --snapshot-replicas.
//
// Shares are of use only together: all ranks of a node, of one save.
#pragma once

#include <vector>

#include "agent/daemon/snapshots/shares.hpp"

namespace cpprun {

// What a neighbour has, `theirs`, as far as it is to be copied: its newest save of which the share
// of every one of its arenas is complete. Empty: there is none, or its copies are among `held`.
std::vector<ShareName> to_copy(const std::vector<ShareName>& theirs,
                               const std::vector<ShareName>& held);

// Which ranks a node runs.
struct OwnRanks {
  int first = 0;
  int count = 1;
  int world_size = 1;
};
// Of the copies that a neighbour holds the newest that has a share for each of these ranks, in
// their order; `index` of each is the local rank. Empty: there is none.
std::vector<ShareName> to_take_back(const std::vector<ShareName>& copies, const OwnRanks& ranks);

// Some save of which this node has the shares of all these ranks is here already.
bool has_own(const std::vector<ShareName>& own, const OwnRanks& ranks);

// How many saves came between two that were copied.
uint64_t left_out(const std::vector<ShareName>& before, const std::vector<ShareName>& now);

}  // namespace cpprun
