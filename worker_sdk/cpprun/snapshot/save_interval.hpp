/// @file
/// When the next snapshot is due. Pure: the caller passes the time. Private to snapshot.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>

namespace cpprun::snapshot {

/// The interval in seconds that loses the least time, if a snapshot costs `cost` seconds and a
/// failure every `between` seconds loses half an interval on average. At least 10 x cost, at most
/// an hour.
double best_interval(double cost, double between);

/// Estimated seconds between failures after `failures` of them in `seconds` of training. Four more
/// hours and one more failure are assumed, so that the first estimate is four hours.
double time_between_failures(double seconds, int64_t failures);

/// Steps at which all ranks read the clock together. The next one is chosen to come within a tenth
/// of the interval, and within a second.
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
