#include "rendezvous/coordinator/round_snapshots.hpp"

#include <algorithm>

#include "rendezvous/coordinator/rounds/ranking.hpp"
#include "rendezvous/coordinator/snapshot_choice.hpp"

namespace cpprun {

void RoundSnapshots::choose(const std::vector<Node*>& ranked,
                            std::vector<control::RankAssignment>& assignments) {
  std::vector<SnapshotView> views;
  for (const Node* node : ranked) {
    const bool serves = node->facts.snapshot_port != 0 && make_secret_;
    views.push_back({node->facts.has_snapshot_dir, serves, node->facts.snapshots});
    std::erase_if(views.back().complete,
                  [this](const auto& each) { return unusable_.contains(each.id); });
  }
  const std::optional<SnapshotChoice> choice = choose_snapshot(views, damaged_);
  resume_.reset();
  if (!choice) return;
  resume_ = choice->snapshot;
  is_fetched_ = choice->is_fetched();
  const std::string secret = is_fetched_ ? make_secret_() : "";
  for (size_t i = 0; i < ranked.size(); ++i) {
    if (!views[i].has_dir) continue;
    control::ResumePoint& resume = assignments[i].resume.emplace();
    resume.snapshot = choice->snapshot;
    assignments[i].snapshot_secret = secret;
    if (!choice->sources[i]) continue;
    const Node& source = *ranked[*choice->sources[i]];
    resume.source_address = reachable_address(source, ranked);
    resume.source_port = source.facts.snapshot_port;
  }
}

void RoundSnapshots::add_replicas(const std::vector<Node*>& ranked,
                                  const std::vector<bool>& are_new,
                                  std::vector<control::RankAssignment>& assignments) const {
  std::vector<ReplicaView> views;
  for (size_t i = 0; i < ranked.size(); ++i) {
    const control::Register& facts = ranked[i]->facts;
    const bool serves = facts.snapshot_port != 0 && make_secret_;
    views.push_back({facts.keeps_replicas && serves, are_new[i]});
  }
  const std::vector<ReplicaPeers> peers = choose_replicas(views);
  const bool is_any = std::any_of(peers.begin(), peers.end(),
                                  [](const ReplicaPeers& each) { return each.of.has_value(); });
  if (!is_any) return;
  const auto peer = [&](std::optional<size_t> index) -> std::optional<control::PeerAddress> {
    if (!index) return std::nullopt;
    const Node& node = *ranked[*index];
    return control::PeerAddress{reachable_address(node, ranked), node.facts.snapshot_port};
  };
  const bool has_secret = resume_ && is_fetched_;
  const std::string fresh = has_secret ? "" : make_secret_();
  for (size_t i = 0; i < assignments.size(); ++i) {
    if (!has_secret) assignments[i].snapshot_secret = fresh;
    assignments[i].replicas_of = peer(peers[i].of);
    assignments[i].replicas_at = peer(peers[i].at);
  }
}

void RoundSnapshots::restore(const control::RankAssignment& assignment) {
  resume_.reset();
  if (assignment.resume) resume_ = assignment.resume->snapshot;
  is_fetched_ = !assignment.snapshot_secret.empty();
}

}  // namespace cpprun
