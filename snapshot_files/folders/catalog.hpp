// The catalog: the snapshots in a folder. Reads only names, manifests and file sizes; readers and
// verify() check checksums. The folder's content may be hostile.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/limits/snapshots.hpp"
#include "common/result.hpp"
#include "snapshot_files/archive/tensor_file.hpp"
#include "snapshot_files/folders/file_layer.hpp"
#include "snapshot_files/folders/manifest.hpp"

namespace cpprun::snapshot_files {

struct FoundSnapshot {
  int64_t step = 0;
  std::string path;  // <dir>/step-<n>
  Manifest manifest;
};

// A folder step-<n> that is not a complete snapshot.
struct Incomplete {
  int64_t step = 0;
  std::string path;
  std::string why;  // "model.pt has 100 bytes, by the manifest it has 300"
};

struct Catalog {
  std::vector<FoundSnapshot> complete;  // newest first
  std::vector<Incomplete> incomplete;   // newest first; only those newer than the oldest complete
};

// Converts between 12 and "step-12"; nothing for names of another form (such as "step-012").
std::string snapshot_name(int64_t step);
std::optional<int64_t> step_of_name(std::string_view name);

// Scans from the newest down until it has found `most` complete snapshots. A missing folder is
// empty. Error: the folder cannot be listed.
Result<Catalog> scan(FileLayer& files, const std::string& folder,
                     size_t most = limits::kSnapshotsReported);

// Whether the folder is cpprun's: another program may call its checkpoints step-<n> too.
bool has_manifest(FileLayer& files, const std::string& path);

// The manifest in a folder of any name.
Result<Manifest> read_manifest(FileLayer& files, const std::string& path);

// Checks one snapshot folder. Error: why it is not complete.
Result<FoundSnapshot> look_at(FileLayer& files, const std::string& path);

// Reads every file of the snapshot and verifies its crc32. Error: the first mismatch.
Status verify(FileLayer& files, const FoundSnapshot& snapshot);

// Opens a file of torch.save or of a snapshot.
Result<archive::TensorFile> open_tensor_file(FileLayer& files, const std::string& path);

}  // namespace cpprun::snapshot_files
