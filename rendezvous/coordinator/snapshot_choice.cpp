#include "rendezvous/coordinator/snapshot_choice.hpp"

#include <algorithm>
#include <map>
#include <tuple>

#include "common/limits/snapshots.hpp"

namespace cpprun {
namespace {

using control::SnapshotName;

struct Holders {
  std::vector<size_t> all;      // nodes, ascending
  std::vector<size_t> servers;  // those from which other nodes can fetch
};

using Key = std::pair<int64_t, std::string>;  // step, id

std::map<Key, Holders> holders_of_all(const std::vector<SnapshotView>& nodes) {
  std::map<Key, Holders> found;
  for (size_t i = 0; i < nodes.size(); ++i) {
    if (!nodes[i].has_dir) continue;
    for (const SnapshotName& snapshot : nodes[i].complete) {
      Holders& holders = found[Key(snapshot.step, snapshot.id)];
      if (!holders.all.empty() && holders.all.back() == i) continue;  // listed twice
      holders.all.push_back(i);
      if (nodes[i].serves) holders.servers.push_back(i);
    }
  }
  return found;
}

bool is_id(const std::string& id) {
  auto is_hex = [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); };
  return id.size() == 32 && std::all_of(id.begin(), id.end(), is_hex);
}

}  // namespace

bool SnapshotChoice::is_fetched() const {
  return std::any_of(sources.begin(), sources.end(), [](const auto& s) { return s.has_value(); });
}

std::optional<SnapshotChoice> choose_snapshot(const std::vector<SnapshotView>& nodes,
                                              const std::set<std::string>& damaged) {
  const auto with_dir = static_cast<size_t>(
      std::count_if(nodes.begin(), nodes.end(), [](const auto& node) { return node.has_dir; }));
  const std::map<Key, Holders> found = holders_of_all(nodes);
  auto rank = [](const auto& entry) {
    const auto& [key, holders] = entry;
    return std::tuple(key.first, holders.all.size(), key.second);
  };
  const std::pair<const Key, Holders>* best = nullptr;
  for (const auto& entry : found) {
    const Holders& holders = entry.second;
    const bool is_everywhere = holders.all.size() == with_dir;
    const bool can_be_fetched = !holders.servers.empty() && !damaged.contains(entry.first.second);
    if (!is_everywhere && !can_be_fetched) continue;
    if (best == nullptr || rank(*best) < rank(entry)) best = &entry;
  }
  if (best == nullptr) return std::nullopt;
  const auto& [key, holders] = *best;
  SnapshotChoice choice{SnapshotName{key.first, key.second}, {}};
  std::vector<bool> has_it(nodes.size());
  for (size_t holder : holders.all) has_it[holder] = true;
  size_t fetching = 0;
  for (size_t i = 0; i < nodes.size(); ++i) {
    const bool lacks_it = nodes[i].has_dir && !has_it[i];
    choice.sources.push_back(
        lacks_it ? std::optional(holders.servers[fetching++ % holders.servers.size()])
                 : std::nullopt);
  }
  return choice;
}

std::vector<ReplicaPeers> choose_replicas(const std::vector<ReplicaView>& nodes) {
  std::vector<ReplicaPeers> peers(nodes.size());
  const size_t count = nodes.size();
  for (size_t i = 0; count > 1 && i < count; ++i) {
    const size_t before = (i + count - 1) % count;
    const size_t behind = (i + 1) % count;
    if (!nodes[i].keeps) continue;
    if (nodes[before].keeps) peers[i].of = before;
    const bool may_hold = nodes[behind].keeps && !nodes[behind].is_new;
    if (nodes[i].is_new && may_hold) peers[i].at = behind;
  }
  return peers;
}

bool are_sane(const std::vector<control::SnapshotName>& snapshots) {
  constexpr int64_t kStepMax = INT64_MAX / 2;
  return snapshots.size() <= limits::kSnapshotsReported &&
         std::all_of(snapshots.begin(), snapshots.end(), [](const SnapshotName& snapshot) {
           return snapshot.step >= 0 && snapshot.step <= kStepMax && is_id(snapshot.id);
         });
}

}  // namespace cpprun
