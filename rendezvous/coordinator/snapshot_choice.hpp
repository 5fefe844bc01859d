// Which snapshot a round begins with. Pure functions of what its nodes said.
//
// Not the judge of contents: a snapshot counts as what its manifest says. Who loads it verifies it,
// and falls back one where it has to (docs/snapshots.md).
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
  bool has_dir = false;  // --snapshot-dir; without one it has no say and gets none
  bool serves = false;   // other nodes can fetch from it
  std::vector<control::SnapshotName> complete{};
};

struct SnapshotChoice {
  control::SnapshotName snapshot;
  // For each node, where it gets the snapshot: the index of another node, or nothing if it has it
  // or no folder for it.
  std::vector<std::optional<size_t>> sources;

  bool is_fetched() const;  // by anybody
};

// The newest that every node with a folder has, or that one which serves has and the others lack,
// whichever is newer; of the same step the one that most nodes have. What is in `damaged` (ids) is
// never fetched. Those who fetch are dealt out over those who serve.
std::optional<SnapshotChoice> choose_snapshot(const std::vector<SnapshotView>& nodes,
                                              const std::set<std::string>& damaged);

// What one node of the round says of replicas in memory (--snapshot-replicas), in the order of
// group ranks.
struct ReplicaView {
  bool keeps = false;   // it keeps replicas for others, and serves its own
  bool is_new = false;  // its workers' shards may lie elsewhere
};
struct ReplicaPeers {
  std::optional<size_t> of;  // of whose shards it keeps replicas: the node before it
  std::optional<size_t> at;  // where its own may lie: at the node behind it
};
// Around in a circle. A node that keeps none has no part in it, and one alone has nobody; where all
// are new nobody has anything.
std::vector<ReplicaPeers> choose_replicas(const std::vector<ReplicaView>& nodes);

// Nobody's list of snapshots is longer, out of range, or names one otherwise.
bool are_sane(const std::vector<control::SnapshotName>& snapshots);

}  // namespace cpprun
