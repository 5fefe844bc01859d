// StagedAgreement: all ranks agree that they have a step in memory, which makes it one to resume
// from. Private to snapshot.
#pragma once

#include <cstdint>
#include <string>

#include "common/result.hpp"
#include "cpprun/snapshot/snapshot_comm.hpp"

namespace cpprun::snapshot {

// One thread at a time. Both methods take the channel of the save.
class StagedAgreement {
 public:
  explicit StagedAgreement(const SnapshotComm& comm) : comm_(comm) {}  // it must outlive this

  // Returns once every rank has its state in memory, or the reason of the first rank that has not.
  // `own`: the sample of this rank, or why it has no state in memory.
  Status agree(const Result<std::string>& own, StoreChannel& channel);
  // Requires that agree() has succeeded. Prints a hint, once, if the sample `own` is not the same
  // on the ranks that write one snapshot.
  void compare(const std::string& own, int64_t step, const Group& group, StoreChannel& channel);

 private:
  const SnapshotComm& comm_;
  bool has_reported_drift_ = false;
};

}  // namespace cpprun::snapshot
