#include "rendezvous/coordinator/ranking.hpp"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "common/endpoint.hpp"
#include "common/text.hpp"

namespace cpprun {
namespace {

// A node that reached the coordinator by an address that other hosts can use too.
const Node* find_elsewhere(const std::vector<Node*>& all) {
  for (const Node* node : all) {
    if (!is_loopback(node->session_addresses.local_address)) return node;
  }
  return nullptr;
}

// Absent sorts behind every present value.
int64_t or_last(const std::optional<int64_t>& value) {
  return value.value_or(INT64_MAX);
}

bool comes_first(const Node* a, const Node* b, bool has_fixed_ranks) {
  auto wishes = [&](const Node* n) {
    int64_t previous = has_fixed_ranks ? INT64_MAX : or_last(n->group_rank);
    return std::tuple(previous, or_last(n->facts.node_rank));
  };
  if (wishes(a) != wishes(b)) return wishes(a) < wishes(b);
  if (int order = text::natural_compare(a->id.name, b->id.name); order != 0) return order < 0;
  return a->arrival < b->arrival;
}

}  // namespace

std::vector<Node*> rank_nodes(std::vector<Node*> nodes, int64_t max, bool has_fixed_ranks) {
  std::sort(nodes.begin(), nodes.end(),
            [&](const Node* a, const Node* b) { return comes_first(a, b, has_fixed_ranks); });
  if (static_cast<int64_t>(nodes.size()) > max) nodes.resize(static_cast<size_t>(max));
  return nodes;
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
  const Node* elsewhere = find_elsewhere(all);
  if (elsewhere == nullptr) return own.empty() ? "127.0.0.1" : own.front();
  for (const std::string& address : own) {
    if (!is_loopback(address)) return address;
  }
  return elsewhere->session_addresses.local_address;
}

std::string coordinator_address(const std::vector<Node*>& all) {
  const Node* elsewhere = find_elsewhere(all);
  return (elsewhere != nullptr ? elsewhere : all.front())->session_addresses.local_address;
}

}  // namespace cpprun
