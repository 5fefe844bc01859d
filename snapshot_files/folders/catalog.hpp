// The catalog: which snapshots a folder holds. Looks at names, manifests and file sizes only;
// checksums are the reader's work, or verify's. Content of the folder may be hostile.
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

// A folder step-<n> that is no complete snapshot.
struct Incomplete {
  int64_t step = 0;
  std::string path;
  std::string why;  // "model.pt has 100 bytes, its manifest says 300"
};

struct Catalog {
  std::vector<FoundSnapshot> complete;  // newest first
  std::vector<Incomplete> incomplete;   // newest first; only those newer than the oldest complete
};

// "step-12" and the way back; nothing for names of another form ("step-012" is one).
std::string snapshot_name(int64_t step);
std::optional<int64_t> step_of_name(std::string_view name);

// Looks from the newest down until `most` complete ones are found. A folder that is not there holds
// none. Error: the folder cannot be listed.
Result<Catalog> scan(FileLayer& files, const std::string& folder,
                     size_t most = limits::kSnapshotsReported);

// One snapshot folder. Error: why it is not complete.
Result<FoundSnapshot> look_at(FileLayer& files, const std::string& path);

// Reads every file of the snapshot and compares its crc32. Error: the first that differs.
Status verify(FileLayer& files, const FoundSnapshot& snapshot);

// Opens a file that torch.save or a snapshot wrote.
Result<archive::TensorFile> open_tensor_file(FileLayer& files, const std::string& path);

}  // namespace cpprun::snapshot_files
