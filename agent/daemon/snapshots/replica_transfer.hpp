// Copies shards from another agent's memory into ours. The peer is untrusted: a save becomes
// complete only when all its shards have arrived with the announced checksums.
//
// Blocking; not for the loop. Every wait has a limit and ends when the CancelToken is stopped.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "agent/daemon/snapshots/peer_socket.hpp"
#include "agent/daemon/snapshots/replica_plan.hpp"
#include "common/limits/snapshots.hpp"
#include "common/result.hpp"
#include "rendezvous/protocol/control/control.hpp"
#include "rendezvous/protocol/transfer/snapshot_protocol.hpp"

namespace cpprun {

struct ShardSource {
  control::PeerAddress peer;
  std::string secret;
  Duration stalls = limits::kSnapshotStallTimeout;
  std::shared_ptr<const JobTls> tls{};  // null: plain connections
};

struct ReplicaCount {
  uint64_t copied = 0;
  uint64_t left_out = 0;
};
struct ReplicaEvents {
  std::function<void(int64_t step)> on_copied;
  std::function<void(const std::string& why)> on_trouble;  // no replicas; may be called often
};
// Replicates each new save of a neighbour until `cancel_token` is stopped, one save at a time. A
// save that a newer one replaces during a copy is skipped. Retries if the neighbour does not
// answer.
ReplicaCount keep_replicas(const ShardSource& source, Arenas& replicas,
                           const std::shared_ptr<const CancelToken>& cancel_token,
                           const ReplicaEvents& events);

struct RestoreResult {
  Status status;
  int64_t step = -1;  // negative: the neighbour has no shards of these ranks, or we had them
};
// Copies a neighbour's replicas of these ranks' shards into our own arenas.
RestoreResult restore_shards(const ShardSource& source, const OwnRanks& ranks, Arenas& own,
                             const std::shared_ptr<const CancelToken>& cancel_token);

}  // namespace cpprun
