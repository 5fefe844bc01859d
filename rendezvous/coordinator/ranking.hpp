// Who takes part in a round, and with which ranks. Pure functions of what the nodes said.
#pragma once

#include <cstdint>
#include <vector>

#include "rendezvous/coordinator/node.hpp"

namespace cpprun {

// The nodes in the order of their group ranks: previous group rank first, then the node rank where
// given, then natural order of host name, then arrival. With fixed ranks (static) the node rank
// alone decides. At most `max` are kept.
std::vector<Node*> rank_nodes(std::vector<Node*> nodes, int64_t max, bool has_fixed_ranks);

// The same nodes, each that has a previous group rank at just that place if there is such a place
// and nobody before it in the order has it; the others fill the gaps in their order. What a node
// keeps in memory is of use to the rank that it was of only.
std::vector<Node*> keep_previous_ranks(std::vector<Node*> ranked);

// Shares of one node in a world: where its global and role ranks begin, and how many there are in
// all.
struct RankRange {
  int64_t base_rank = 0;
  int64_t world_size = 0;
  int64_t base_role_rank = 0;
  int64_t role_world_size = 0;
};

// One share per node, in the same order. O(nodes log roles).
std::vector<RankRange> assign_ranks(const std::vector<Node*>& ranked);

// The address at which the other nodes reach `node`: --local-addr, else the first of its addresses
// that is not loopback if any peer is elsewhere, else where such a peer reached the coordinator
// (for a node on the coordinator's own host), else its first address.
std::string reachable_address(const Node& node, const std::vector<Node*>& all);

// The address at which all nodes reach the coordinator: where a node that is not on its host
// reached it, else the loopback address that all have used. Requires: at least one node.
std::string coordinator_address(const std::vector<Node*>& all);

}  // namespace cpprun
