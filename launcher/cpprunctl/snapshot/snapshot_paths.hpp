// What a path on the command line names: a folder of snapshots, one snapshot, or one file. Private
// to the snapshot verbs.
#pragma once

#include <string>
#include <vector>

#include "common/result.hpp"
#include "snapshot_files/archive/tensor_file.hpp"
#include "snapshot_files/folders/catalog.hpp"

namespace cpprun::ctl {

enum class PathKind { Folder, Snapshot, File };

// A folder is a snapshot if it is called step-<n> or has a manifest. Error: nothing is there.
Result<PathKind> kind_of_path(const std::string& path);

// A snapshot's folder that must be complete. Error: why it is not.
Result<snapshot_files::FoundSnapshot> complete_snapshot(const std::string& path);

// The tensor files of a snapshot, in the manifest's order, with what stands in front of their
// names in lists ("model.pt/"; nothing for a file by itself).
struct NamedFile {
  std::string prefix;
  archive::TensorFile file;
};
Result<std::vector<NamedFile>> open_files(const std::string& path, PathKind kind);

// "4.1 MiB".
std::string bytes_text(uint64_t bytes);

}  // namespace cpprun::ctl
