// Limits of snapshots and their files.
#pragma once

#include <chrono>
#include <cstddef>

#include "common/time.hpp"

namespace cpprun::limits {

using namespace std::chrono_literals;

// A rank waits this long for the shards of the others; then it gives this snapshot up.
inline constexpr Duration kSnapshotShardsTimeout = 600s;
inline constexpr size_t kSnapshotsReported = 8;            // the newest ones of a folder
inline constexpr size_t kSnapshotFolderEntries = 100'000;  // a larger folder is no snapshot folder
inline constexpr size_t kManifestBytes = 16 << 20;         // twice 100,000 ranks of some 60 bytes
inline constexpr size_t kManifestFiles = 200'000;
inline constexpr int kManifestDepth = 32;      // nested arrays and objects
inline constexpr Duration kDraftMinAge = 10s;  // a younger draft's writer may not hold its lock yet
// A draft without a change for so long is abandoned: the machine that wrote it is gone.
inline constexpr Duration kDraftAbandoned = std::chrono::hours(24);
inline constexpr size_t kArchiveRecords = 1'000'000;  // storages of one file; a big model: 10,000
inline constexpr size_t kArchiveDirectoryBytes = 256 << 20;
inline constexpr size_t kArchivePickleBytes = 256 << 20;

}  // namespace cpprun::limits
