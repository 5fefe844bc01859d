// Which nodes take part in a round, with which ranks and addresses. Pure functions of what the
// nodes have reported.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "rendezvous/coordinator/node.hpp"
#include "rendezvous/coordinator/rounds/round.hpp"

namespace cpprun {

// The nodes in the order of their group ranks: previous group rank first, then the node rank where
// given, then natural order of host name, then arrival. With fixed ranks (static) the node rank
// alone decides. At most `max` are kept; if one of them keeps replicas, as keep_previous_ranks().
std::vector<Node*> rank_nodes(std::vector<Node*> nodes, int64_t max, bool has_fixed_ranks);

// The same nodes. A node with a previous group rank keeps it, if the round has that rank and no
// node earlier in the order keeps it; the other nodes fill the gaps in their order. The replicas in
// a node's memory are of use to their own rank only.
std::vector<Node*> keep_previous_ranks(std::vector<Node*> ranked);

// Where the global and role ranks of one node begin, and how many there are in all.
struct RankRange {
  int64_t base_rank = 0;
  int64_t world_size = 0;
  int64_t base_role_rank = 0;
  int64_t role_world_size = 0;
};

// One range per node, in the same order. O(nodes log roles).
std::vector<RankRange> assign_ranks(const std::vector<Node*>& ranked);

// The address at which the other nodes reach `node`: --local-addr; else, if a node is on another
// host than the coordinator, the first of the addresses of `node` that is not loopback, or the
// address at which that other node reached the coordinator; else its first address.
std::string reachable_address(const Node& node, const std::vector<Node*>& all);

// The address at which all nodes reach the coordinator: the one that a node on another host has
// used, else the loopback address that all have used. Requires: at least one node.
std::string coordinator_address(const std::vector<Node*>& all);

// The rank assignments of a round, as far as they follow from its members, in rank order, and from
// the settings of the job. Requires: at least one node.
std::vector<control::RankAssignment> make_assignments(const std::vector<Node*>& ranked,
                                                      const control::JobSpec& job_spec,
                                                      int64_t store_port);

// Where a rank of the newest round is.
struct RankLocation {
  const Node* node = nullptr;  // connected or not
  int64_t local_rank = 0;
};
// Nothing: none of the nodes has that rank.
std::optional<RankLocation> place_of(int64_t rank, const Round::Assignments& assignments,
                                     const std::map<Incarnation, Node>& nodes);

}  // namespace cpprun
