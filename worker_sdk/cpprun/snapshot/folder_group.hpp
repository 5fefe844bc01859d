// Where a Snapshot writes, and which ranks see the same folder. Private to snapshot.
#pragma once

#include <optional>
#include <string>

#include "cpprun/snapshot/snapshot_comm.hpp"

namespace cpprun::snapshot {

struct SnapshotLocation {
  std::string path;  // of the folder or file
  bool is_single_file = false;
};

// Collective: finds out which ranks see the same folder.
class FolderGroup {
 public:
  // Both must outlive it.
  FolderGroup(const SnapshotLocation& location, const SnapshotComm& comm)
      : location_(location), comm_(comm) {}

  // The group of this rank; the first call is the collective. With a single file, all ranks are one
  // group.
  const Group& get();
  // Lets the next get() determine the group again, if a node could not create its marker file.
  void forget_if_uncertain();

 private:
  Group determine();
  Group determine(int first_of_node);

  const SnapshotLocation& location_;
  const SnapshotComm& comm_;
  std::optional<Group> group_;
  bool is_certain_ = false;
};

}  // namespace cpprun::snapshot
