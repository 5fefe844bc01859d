/// @file
/// PollSchedule: the steps at which all ranks read the clock together. Pure: the caller passes the
/// time. Private to snapshot.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>

namespace cpprun::snapshot {

/// Estimates from the steps until now how many come within a time.
class PollSchedule {
 public:
  bool is_due(int64_t step) const { return step >= next_poll_; }
  /// Records that the clock read `now` seconds at `step`; returns the step `wait` seconds later, at
  /// least the next one.
  int64_t next_poll(int64_t step, double now, double wait);
  void set_next_poll(int64_t step) { next_poll_ = step; }

 private:
  int64_t next_poll_ = 0;
  std::optional<std::pair<int64_t, double>> last_;  // step and time
};

}  // namespace cpprun::snapshot
