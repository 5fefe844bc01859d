// Private to snapshot.
#pragma once

#include "common/result.hpp"
#include "cpprun/snapshot/snapshot_comm.hpp"

namespace cpprun::snapshot {

// All ranks agree that they have a step in memory, which makes it one to resume from. Returns once
// every rank has its state there, or the reason of the first rank that has not. `own`: why this
// rank has no state in memory. `channel`: of the save. In a background thread.
Status agree_on_staged(const Status& own, const SnapshotComm& comm, StoreChannel& channel);

}  // namespace cpprun::snapshot
