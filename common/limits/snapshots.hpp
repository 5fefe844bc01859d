// Limits: snapshots and the files they consist of.
#pragma once

#include <chrono>
#include <cstddef>

#include "common/time.hpp"

namespace cpprun::limits {

using namespace std::chrono_literals;

inline constexpr Duration kSnapshotOthersWrite =
    600s;  // a rank waits so long for what another one writes; then this snapshot is given up
inline constexpr size_t kSnapshotsReported = 8;  // newest ones that a folder is asked for
inline constexpr size_t kSnapshotFolderEntries =
    100'000;  // a folder with more is none that snapshots are kept in
inline constexpr size_t kManifestBytes = 16 << 20;  // 100,000 ranks of some 60 bytes each, and room
inline constexpr size_t kManifestFiles = 200'000;
inline constexpr int kManifestDepth = 32;      // nested arrays and objects
inline constexpr Duration kDraftMinAge = 10s;  // its writer may not have locked it yet
inline constexpr Duration kDraftAbandoned =
    std::chrono::hours(24);  // unchanged so long: the machine that wrote it is gone
inline constexpr size_t kArchiveRecords = 1'000'000;  // storages of one file; a big model: 10,000
inline constexpr size_t kArchiveDirectoryBytes = 256 << 20;
inline constexpr size_t kArchivePickleBytes = 256 << 20;

}  // namespace cpprun::limits
