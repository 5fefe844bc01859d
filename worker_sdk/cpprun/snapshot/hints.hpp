// Warnings on stderr about probable mistakes in the use of a Snapshot. Private to snapshot.
#pragma once

#include "cpprun/snapshot/folder_group.hpp"
#include "cpprun/snapshot/snapshot_comm.hpp"
#include "cpprun/snapshot/tracked_objects.hpp"

namespace cpprun::snapshot {

// Warns about SDK objects of this process that the Snapshot does not track, and about parameters
// that differ between the ranks of a group, which write only one copy of them. Collective.
void warn_about_mistakes(const TrackedObjects& objects, const SnapshotComm& comm,
                         FolderGroup& group);

}  // namespace cpprun::snapshot
