// SaveSchedule: decides when maybe_save() of a Snapshot saves. Private to snapshot.
#pragma once

#include <cstdint>
#include <string>

#include "cpprun/snapshot/poll_schedule.hpp"
#include "cpprun/snapshot/snapshot.hpp"
#include "cpprun/snapshot/snapshot_comm.hpp"

namespace cpprun::snapshot {

// Seconds that a save costs.
struct SaveCost {
  double pause = 0;    // training waits
  double writing = 0;  // the files are written
};

class SaveSchedule {
 public:
  // `comm` must outlive it. `owner`: names the Snapshot, as in other rounds of the process.
  SaveSchedule(const SnapshotComm& comm, std::string owner);

  // Whether to save at `step`. Collective if `when` has an interval.
  bool is_due(int64_t step, const SaveWhen& when, const SaveCost& cost);
  // A save begins now. Returns the seconds of training, in all runs.
  double begin_save();
  void set_saved_step(int64_t step) { saved_step_ = step; }
  // Training continues from a snapshot of `step`, taken after `seconds` of training.
  void resume(int64_t step, double seconds);

 private:
  const SnapshotComm& comm_;
  const std::string owner_;
  int64_t saved_step_ = -1;  // of the last save that started
  PollSchedule polls_;
};

}  // namespace cpprun::snapshot
