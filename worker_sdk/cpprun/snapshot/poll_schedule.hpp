/// @file
/// PollSchedule: the steps at which all ranks read the clock together. Pure: the caller passes the
/// time. Private to snapshot and trainer.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>

namespace cpprun::snapshot {

/// The next step is chosen to come within a tenth of the interval, and within a second.
class PollSchedule {
 public:
  bool is_due(int64_t step) const { return step >= next_poll_; }
  /// Records that the clock read `now` seconds at `step`; returns the step of the next poll.
  int64_t next_poll(int64_t step, double now, double interval);
  void set_next_poll(int64_t step) { next_poll_ = step; }

 private:
  int64_t next_poll_ = 0;
  std::optional<std::pair<int64_t, double>> last_;  // step and time
};

}  // namespace cpprun::snapshot
