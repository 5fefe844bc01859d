// SnapshotLocation: where a Snapshot writes, and in which form. Private to snapshot.
#pragma once

#include <string>

#include "cpprun/snapshot/snapshot.hpp"

namespace cpprun::snapshot {

struct SnapshotLocation {
  std::string path;  // of the folder or file
  bool is_single_file = false;
};

// Throws std::invalid_argument if the options name both a folder and a file.
SnapshotLocation locate(const SnapshotOptions& options);

}  // namespace cpprun::snapshot
