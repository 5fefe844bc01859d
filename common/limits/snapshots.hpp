// Limits of snapshots, their files, and their transfer between agents.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>

#include "common/time.hpp"

namespace cpprun::limits {

using namespace std::chrono_literals;

// A rank waits this long for the shards of the others; then it gives this snapshot up.
inline constexpr Duration kSnapshotShardsTimeout = 600s;
// A training does not wait longer for one call of a file system: not even a sync of a slow disk
// takes so long, and the hang detector takes a worker for hung after 5 minutes.
inline constexpr Duration kFileAnswerTimeout = 240s;
inline constexpr size_t kSnapshotsReported = 8;            // the newest ones of a folder
inline constexpr size_t kDamagedNamed = 8;                 // in one message; the rest is counted
inline constexpr size_t kSnapshotFolderEntries = 100'000;  // a larger folder is no snapshot folder
inline constexpr size_t kManifestBytes = 16 << 20;         // twice 100,000 ranks of some 60 bytes
inline constexpr size_t kManifestFiles = 200'000;
inline constexpr int kManifestDepth = 32;      // nested arrays and objects
inline constexpr Duration kDraftMinAge = 10s;  // a younger draft's writer may not hold its lock yet
// A sweep that looks at a draft holds its lock for microseconds, unless the sweep is suspended.
inline constexpr Duration kDraftLockTimeout = 1s;
inline constexpr Duration kDraftLockPause = 1ms;  // between two attempts
// A draft without a change for so long is abandoned: the machine that wrote it is gone.
inline constexpr Duration kDraftAbandoned = std::chrono::hours(24);
inline constexpr size_t kArchiveRecords = 1'000'000;  // storages of one file; a big model: 10,000
inline constexpr size_t kArchiveDirectoryBytes = 256 << 20;
inline constexpr size_t kArchivePickleBytes = 256 << 20;
inline constexpr size_t kTensorDimensions = 64;                 // LibTorch's own limit
inline constexpr size_t kSafetensorsHeaderBytes = 100'000'000;  // as in Hugging Face's library
inline constexpr size_t kSafetensorsFiles = 10'000;             // of one model; big ones have 200
// A million chunks: a model of 400 billion parameters with its optimizer on 500 ranks.
inline constexpr size_t kDcpMetadataBytes = 256 << 20;
// Values in a pickle. A chunk of a `.metadata` has 30 to 40: a million chunks. While it is read,
// each takes 150 bytes, and in the finished tree as much again: 12 GB in all.
inline constexpr size_t kPickleValues = 40'000'000;
// Along which a tensor is split: a mesh has four or fewer. The check of chunks makes two to this
// power of corners for each.
inline constexpr size_t kDcpSplitDimensions = 8;

// Transfer between agents.
// A folder that does not answer (a network file system that is gone) must not stop a node.
inline constexpr Duration kSnapshotScanTimeout = 10s;
// A fetch without a byte for so long has failed. Longer than a node lease, so that the coordinator
// reports the loss of the other node first.
inline constexpr Duration kSnapshotStallTimeout = 10s;
inline constexpr Duration kSnapshotQueueTimeout = 600s;  // behind other nodes that fetch there
inline constexpr uint64_t kSnapshotBytesPerSecond = 64 * 1024;     // average; a slower fetch fails
inline constexpr uint64_t kSnapshotFileBytes = uint64_t{1} << 44;  // of one fetched file
inline constexpr Duration kSnapshotSlow = 2s;                      // longer fetches are logged
inline constexpr size_t kSnapshotPeers = 8;                        // served by one node at a time
inline constexpr size_t kSnapshotConnections = 64;       // served, queued and not yet authenticated
inline constexpr Duration kSnapshotRequestTimeout = 2s;  // from connection to request

// Shards in memory (--snapshot-replicas).
inline constexpr int kShardsPerNode = 4'096;           // as many as workers
inline constexpr size_t kShardListBytes = 1 << 20;     // their names
inline constexpr Duration kShardPollInterval = 500ms;  // between two checks for a newer shard
inline constexpr Duration kReplicaFetchTimeout = 10s;  // for the neighbour's answer
// Average. A slower copy fails: the copy on disk is quicker.
inline constexpr uint64_t kShardBytesPerSecond = 16 << 20;
inline constexpr int kReplicaNice = 10;  // of the replicating thread; training comes first

}  // namespace cpprun::limits
