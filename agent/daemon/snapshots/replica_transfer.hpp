// Brings shards from another agent's memory into ours. What the other sends may be anything: a
// shard counts when all that belong to it are here and each has the checksum that was named.
//
// For threads that may wait. Every wait has a limit and ends when the Stopper says so.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "agent/daemon/snapshots/peer_socket.hpp"
#include "agent/daemon/snapshots/replica_plan.hpp"
#include "common/limits/fetch.hpp"
#include "common/result.hpp"
#include "rendezvous/protocol/control/control.hpp"
#include "rendezvous/protocol/transfer/replica_protocol.hpp"

namespace cpprun {

struct ShardSource {
  control::PeerAddress peer;
  std::string secret;
  Duration stalls = limits::kSnapshotStallTimeout;
};

struct ReplicaCount {
  uint64_t copied = 0;
  uint64_t left_out = 0;
};
struct ReplicaEvents {
  std::function<void(int64_t step)> on_copied;
  std::function<void(const std::string& why)> on_trouble;  // there are no replicas; maybe often
};
// Replicates the shards of a neighbour, each new save as soon as it is seen and the last one is
// done, until it is stopped. A neighbour that does not answer is asked again. The newest counts: a
// save that came and went while a copy was under way is left out.
ReplicaCount keep_replicas(const ShardSource& source, Arenas& replicas,
                           const std::shared_ptr<const CancelToken>& cancel_token,
                           const ReplicaEvents& events);

struct RestoreResult {
  Status status;
  int64_t step = -1;  // negative: the neighbour had nothing for these ranks, or they were here
};
// Brings the replicas of these ranks' shards from a neighbour into our own arenas.
RestoreResult restore_shards(const ShardSource& source, const OwnRanks& ranks, Arenas& own,
                             const std::shared_ptr<const CancelToken>& cancel_token);

}  // namespace cpprun
