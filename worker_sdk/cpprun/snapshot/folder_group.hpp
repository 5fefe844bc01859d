// FolderGroup: finds out which ranks see the same snapshot folder. Collective. Private to snapshot.
#pragma once

#include <optional>

#include "cpprun/snapshot/snapshot_comm.hpp"
#include "cpprun/snapshot/snapshot_location.hpp"

namespace cpprun::snapshot {

class FolderGroup {
 public:
  // Both must outlive it.
  FolderGroup(const SnapshotLocation& location, const SnapshotComm& comm)
      : location_(location), comm_(comm) {}

  // The group of this rank. The first call, on all ranks, is a collective. With a single file, all
  // ranks are one group.
  const Group& get();
  // Lets the next get() determine the group again, if a node could not create its marker file.
  void forget_if_uncertain();

 private:
  Group determine();

  const SnapshotLocation& location_;
  const SnapshotComm& comm_;
  std::optional<Group> group_;
  bool is_certain_ = false;
};

}  // namespace cpprun::snapshot
