// Manifest: the contents of a snapshot's manifest.json. A snapshot is complete if its manifest
// exists and every file that it names has the size that it gives. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "common/result.hpp"

namespace cpprun::snapshot_files {

inline constexpr const char* kManifestName = "manifest.json";
inline constexpr const char* kModelName = "model.pt";
inline constexpr const char* kOptimizerName = "optim.pt";
// Of a sharded snapshot, and of each checkpoint of torch.distributed.checkpoint (DCP).
inline constexpr const char* kDcpMetadataName = ".metadata";
std::string rank_file_name(int rank);  // "rank-3.pt"

struct ManifestFile {
  std::string name;  // without a folder; .metadata, or without a leading dot
  uint64_t bytes = 0;
  uint32_t crc32 = 0;  // of the whole file
  bool operator==(const ManifestFile&) const = default;
};

struct Manifest {
  std::string id;  // 32 hex digits; the same on every node that holds a part of the snapshot
  int64_t step = 0;
  int64_t epoch = 0;
  int world_size = 1;
  std::string run_id;
  int64_t round = 0;
  std::string torch;     // version
  std::string cpprun;    // version
  std::string saved_at;  // RFC 3339
  std::vector<ManifestFile> files;
  std::vector<std::string> elsewhere;  // files of this snapshot in other nodes' folders
  std::string user = "{}";             // a JSON object, as text

  // Null for an unknown name.
  const ManifestFile* find(std::string_view name) const;
  bool operator==(const Manifest&) const = default;
};

// The file's text. Requires: decode_manifest accepts it (checked).
std::string encode(const Manifest& manifest);

// The text may be hostile; unknown fields are ignored. Error (Protocol): what is wrong with it.
Result<Manifest> decode_manifest(std::string_view text);

}  // namespace cpprun::snapshot_files
