// Limits: snapshots that one agent fetches from another.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>

#include "common/time.hpp"

namespace cpprun::limits {

using namespace std::chrono_literals;

inline constexpr Duration kSnapshotScanTimeout =
    10s;  // a folder that does not answer (a network file system that is gone) holds no node up
inline constexpr Duration kSnapshotStallTimeout =
    10s;  // a fetch without a byte for so long has failed; longer than a lease, so that the loss of
          // the other node is told before
inline constexpr Duration kSnapshotQueueTimeout =
    600s;  // behind others who fetch from the same node
inline constexpr uint64_t kSnapshotBytesPerSecond =
    64 * 1024;  // a fetch that is slower on the whole has failed
inline constexpr uint64_t kSnapshotFileBytes = uint64_t{1} << 44;  // of one fetched file
inline constexpr Duration kSnapshotSlow = 2s;       // a fetch that takes longer is worth a line
inline constexpr size_t kSnapshotPeers = 8;         // fetching from one node at a time
inline constexpr size_t kSnapshotConnections = 64;  // with those that must wait, and strangers
inline constexpr Duration kSnapshotRequestTimeout = 2s;  // who fetches says what within this time

// Shards in memory (--snapshot-replicas).
inline constexpr int kShardsPerNode = 4'096;        // as many as workers
inline constexpr size_t kShardListBytes = 1 << 20;  // their names
inline constexpr Duration kShardPollInterval =
    500ms;  // between two looks whether there is a newer one
inline constexpr Duration kReplicaFetchTimeout =
    10s;  // a node waits so long for its neighbour's word
inline constexpr uint64_t kShardBytesPerSecond =
    16 << 20;  // a copy that is slower on the whole has failed: the disk is quicker
inline constexpr int kReplicaNice = 10;  // of the thread that replicates; training comes first

}  // namespace cpprun::limits
