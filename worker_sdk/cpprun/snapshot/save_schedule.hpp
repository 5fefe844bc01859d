// SaveSchedule: decides when maybe_save() saves, and keeps the training time. Private to snapshot.
#pragma once

#include <chrono>
#include <cstdint>

#include "cpprun/snapshot/save_interval.hpp"
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
  // `comm` must outlive it.
  explicit SaveSchedule(const SnapshotComm& comm) : comm_(comm) {}

  // Seconds of training, summed over all runs.
  double seconds() const;
  // Whether to save at `step`. Collective if `when` has an interval.
  bool is_due(int64_t step, const SaveWhen& when, const SaveCost& cost);
  // A save begins now; returns seconds().
  double begin_save() { return saved_at_ = seconds(); }
  void set_saved_step(int64_t step) { saved_step_ = step; }
  // Training continues from a snapshot of `step`, taken after `seconds` of training.
  void resume(int64_t step, double seconds);

 private:
  const SnapshotComm& comm_;
  std::chrono::steady_clock::time_point started_at_ = std::chrono::steady_clock::now();
  double seconds_before_ = 0;  // of training, in earlier runs
  double saved_at_ = 0;        // when the last save began, as seconds()
  int64_t saved_step_ = -1;    // of the last save that started
  PollSchedule polls_;
};

}  // namespace cpprun::snapshot
