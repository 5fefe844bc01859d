// Which snapshot a round resumes from. Pure functions of what its nodes report.
//
// These functions trust manifests. The worker that loads a snapshot verifies it, and takes the one
// before it if it is damaged (docs/reference/snapshots.md).
#pragma once

#include <cstddef>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "rendezvous/protocol/control/control.hpp"

namespace cpprun {

// What one node of the round has.
struct SnapshotView {
  bool has_dir = false;  // --snapshot-dir; without one the node does not count and gets none
  bool serves = false;   // other nodes can fetch from it
  std::vector<control::SnapshotName> complete{};
};

struct SnapshotChoice {
  control::SnapshotName snapshot;
  // For each node the index of the node from which it fetches the snapshot. Nothing: it has the
  // snapshot, or no folder for it.
  std::vector<std::optional<size_t>> sources;

  bool is_fetched() const;  // by at least one node
};

// The newest snapshot that every node with a folder has or can fetch from another node; of several
// with the same step the one that most nodes have. Snapshots in `damaged` (ids) are never fetched.
// The nodes that fetch are spread evenly over the nodes that serve.
std::optional<SnapshotChoice> choose_snapshot(const std::vector<SnapshotView>& nodes,
                                              const std::set<std::string>& damaged);

// What one node of the round reports of replicas in memory (--snapshot-replicas), in the order of
// group ranks.
struct ReplicaView {
  bool keeps = false;   // it keeps replicas for other nodes, and serves its own shards
  bool is_new = false;  // the shards of its ranks may be at another node
};
struct ReplicaPeers {
  std::optional<size_t> of;  // the node whose shards it replicates: the one before it
  std::optional<size_t> at;  // the node that may have replicas of its own: the one behind it
};
// The nodes form a ring. A node that keeps no replicas has no peers, and neither has a lone node.
// If all nodes are new, none has replicas.
std::vector<ReplicaPeers> choose_replicas(const std::vector<ReplicaView>& nodes);

// Whether the list is short enough, and every step and id in it is well-formed.
bool are_sane(const std::vector<control::SnapshotName>& snapshots);

}  // namespace cpprun
