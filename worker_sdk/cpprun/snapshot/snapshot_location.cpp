#include "cpprun/snapshot/snapshot_location.hpp"

#include <stdexcept>

#include "cpprun/snapshot/snapshot_comm.hpp"

namespace cpprun::snapshot {

SnapshotLocation locate(const SnapshotOptions& options) {
  if (!options.file.empty() && !options.dir.empty()) {
    throw std::invalid_argument("a Snapshot has either a folder (.dir) or a file (.file)");
  }
  const std::string& launchers = own_variable().snapshot_dir;
  if (!options.file.empty() && launchers.empty()) return {options.file, true};
  if (!options.dir.empty()) return {options.dir, false};
  return {launchers.empty() ? "snapshots" : launchers, false};
}

}  // namespace cpprun::snapshot
