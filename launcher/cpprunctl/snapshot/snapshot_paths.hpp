// Classifies a path from the command line: a folder of snapshots, one snapshot, or one file.
// Private to the snapshot commands.
#pragma once

#include <string>
#include <vector>

#include "common/result.hpp"
#include "snapshot_files/archive/tensor_file.hpp"
#include "snapshot_files/folders/catalog.hpp"

namespace cpprun::ctl {

enum class PathKind { Folder, Snapshot, File };

// A folder is a snapshot if its name is step-<n> or it has a manifest. Error: the path is missing.
Result<PathKind> kind_of_path(const std::string& path);

// Opens a snapshot's folder that must be complete. Error: what is missing.
Result<snapshot_files::FoundSnapshot> complete_snapshot(const std::string& path);

// The tensor files of a snapshot in the manifest's order, with the prefix of their names in lists
// ("model.pt/"; empty for a single file).
struct NamedFile {
  std::string prefix;
  archive::TensorFile file;
};
Result<std::vector<NamedFile>> open_files(const std::string& path, PathKind kind);

// "4.1 MiB".
std::string bytes_text(uint64_t bytes);

}  // namespace cpprun::ctl
