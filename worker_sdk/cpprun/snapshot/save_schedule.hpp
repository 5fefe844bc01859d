// SaveSchedule: decides when maybe_save() of a Snapshot saves. Private to snapshot.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "cpprun/snapshot/poll_schedule.hpp"
#include "cpprun/snapshot/snapshot.hpp"
#include "cpprun/snapshot/snapshot_comm.hpp"

namespace cpprun::snapshot {

// Seconds that a save costs.
struct SaveCost {
  double pause = 0;    // training waits
  double staging = 0;  // until it is complete in memory
  double writing = 0;  // until it is on disk, if it goes there
};

// Throws std::invalid_argument for members that are negative or that have no effect together.
void check(const SaveWhen& when);

class SaveSchedule {
 public:
  // `comm` must outlive it. `owner`: names the Snapshot, as in other rounds of the process.
  SaveSchedule(const SnapshotComm& comm, std::string owner);

  // Whether to save at `step`. Collective if `when` has an interval.
  bool is_due(int64_t step, const SaveWhen& when, const SaveCost& cost);
  // Whether a save that is due goes to disk: the first one, so that a folder that can't be written
  // to shows at once, then as `when` asks. Collective if `when` has a time between those on disk.
  bool is_for_disk(int64_t step, const SaveWhen& when) const;
  // A save begins now. Returns the seconds of training, in all runs.
  double begin_save(int64_t step, bool to_disk);
  // Training begins anew.
  void begin() { last_step_ = 0; }
  // Training continues from a snapshot of `step`, taken after `seconds` of training.
  void resume(int64_t step, double seconds);

 private:
  const SnapshotComm& comm_;
  const std::string owner_;
  int64_t saved_step_ = -1;                            // of the last save that started
  std::optional<int64_t> last_step_;                   // of the last call of is_due()
  std::optional<std::pair<int64_t, double>> on_disk_;  // step and time of the last one for the disk
  PollSchedule polls_;
};

}  // namespace cpprun::snapshot
