#include "rendezvous/coordinator/rounds/ranking.hpp"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "common/endpoint.hpp"
#include "common/text.hpp"

namespace cpprun {
namespace {

// A node on another host than the coordinator. nullptr: none.
const Node* find_remote(const std::vector<Node*>& all) {
  for (const Node* node : all) {
    if (!is_loopback(node->session_addresses.local_address)) return node;
  }
  return nullptr;
}

// No value sorts behind every value.
int64_t or_last(const std::optional<int64_t>& value) { return value.value_or(INT64_MAX); }

bool comes_first(const Node* a, const Node* b, bool has_fixed_ranks) {
  auto wanted = [&](const Node* n) {
    int64_t previous = has_fixed_ranks ? INT64_MAX : or_last(n->group_rank);
    return std::tuple(previous, or_last(n->facts.node_rank));
  };
  if (wanted(a) != wanted(b)) return wanted(a) < wanted(b);
  if (int order = text::natural_compare(a->id.name, b->id.name); order != 0) return order < 0;
  return a->arrival < b->arrival;
}

}  // namespace

std::vector<Node*> rank_nodes(std::vector<Node*> nodes, int64_t max, bool has_fixed_ranks) {
  std::sort(nodes.begin(), nodes.end(),
            [&](const Node* a, const Node* b) { return comes_first(a, b, has_fixed_ranks); });
  if (static_cast<int64_t>(nodes.size()) > max) nodes.resize(static_cast<size_t>(max));
  const bool is_any_replica_kept = std::any_of(
      nodes.begin(), nodes.end(), [](const Node* node) { return node->facts.keeps_replicas; });
  return is_any_replica_kept ? keep_previous_ranks(std::move(nodes)) : nodes;
}

std::vector<Node*> keep_previous_ranks(std::vector<Node*> ranked) {
  std::vector<Node*> placed(ranked.size());
  for (Node*& node : ranked) {
    const int64_t place = node->group_rank.value_or(-1);
    const bool is_one = place >= 0 && place < static_cast<int64_t>(placed.size());
    if (is_one && placed[static_cast<size_t>(place)] == nullptr) {
      placed[static_cast<size_t>(place)] = std::exchange(node, nullptr);
    }
  }
  size_t gap = 0;
  for (Node* node : ranked) {
    if (node == nullptr) continue;
    while (placed[gap] != nullptr) ++gap;
    placed[gap] = node;
  }
  return placed;
}

std::vector<RankRange> assign_ranks(const std::vector<Node*>& ranked) {
  std::vector<RankRange> rank_ranges;
  std::map<std::string, int64_t> role_sizes;
  int64_t world_size = 0;
  for (const Node* node : ranked) {
    int64_t& role_size = role_sizes[node->facts.role];
    rank_ranges.push_back(RankRange{world_size, 0, role_size, 0});
    world_size += node->facts.nproc;
    role_size += node->facts.nproc;
  }
  for (size_t i = 0; i < ranked.size(); ++i) {
    rank_ranges[i].world_size = world_size;
    rank_ranges[i].role_world_size = role_sizes[ranked[i]->facts.role];
  }
  return rank_ranges;
}

std::string reachable_address(const Node& node, const std::vector<Node*>& all) {
  if (!node.facts.local_addr.empty()) return node.facts.local_addr;
  const std::vector<std::string>& own = node.facts.addresses;
  const Node* remote = find_remote(all);
  if (remote == nullptr) return own.empty() ? "127.0.0.1" : own.front();
  for (const std::string& address : own) {
    if (!is_loopback(address)) return address;
  }
  return remote->session_addresses.local_address;
}

std::string coordinator_address(const std::vector<Node*>& all) {
  const Node* remote = find_remote(all);
  return (remote != nullptr ? remote : all.front())->session_addresses.local_address;
}

std::vector<control::RankAssignment> make_assignments(const std::vector<Node*>& ranked,
                                                      const control::JobSpec& job_spec,
                                                      int64_t store_port) {
  const Node& first = *ranked.front();
  control::RankAssignment shared;
  shared.master_addr = job_spec.master_addr;
  if (shared.master_addr.empty()) {
    shared.master_addr =
        job_spec.is_agent_store ? coordinator_address(ranked) : reachable_address(first, ranked);
  }
  shared.master_port = job_spec.master_port;
  if (shared.master_port == 0) {
    shared.master_port = job_spec.is_agent_store ? store_port : first.facts.reserved_port;
  }
  shared.store_port = store_port;
  shared.is_agent_store = job_spec.is_agent_store;
  shared.group_size = static_cast<int64_t>(ranked.size());
  const std::vector<RankRange> ranges = assign_ranks(ranked);
  std::vector<control::RankAssignment> assignments(ranked.size(), shared);
  for (size_t i = 0; i < ranked.size(); ++i) {
    assignments[i].group_rank = static_cast<int64_t>(i);
    assignments[i].base_rank = ranges[i].base_rank;
    assignments[i].world_size = ranges[i].world_size;
    assignments[i].base_role_rank = ranges[i].base_role_rank;
    assignments[i].role_world_size = ranges[i].role_world_size;
  }
  return assignments;
}

std::optional<RankLocation> place_of(int64_t rank, const Round::Assignments& assignments,
                                     const std::map<Incarnation, Node>& nodes) {
  for (const auto& [incarnation, assignment] : assignments) {
    const auto it = nodes.find(incarnation);
    if (it == nodes.end() || rank < assignment.base_rank) continue;
    const int64_t local_rank = rank - assignment.base_rank;
    if (local_rank < it->second.facts.nproc) return RankLocation{&it->second, local_rank};
  }
  return std::nullopt;
}

}  // namespace cpprun
