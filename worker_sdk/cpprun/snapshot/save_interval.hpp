// When the next snapshot is due. Pure; seconds are the caller's. Private to snapshot.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>

namespace cpprun::snapshot {

// Seconds between snapshots that lose least: each costs `cost`, a failure comes every `between`
// seconds and loses half an interval on average. At least ten times the cost, at most an hour.
double best_interval(double cost, double between);

// Seconds between failures, from what was seen: `failures` in `seconds` of training. Before the
// first failure it is taken to be as if one would come in four hours.
double time_between_failures(double seconds, int64_t failures);

// Which steps to look at the clock on, when all ranks must look at the same ones: the next look is
// so many steps on that it comes within a tenth of the interval, at most a second.
class PollSchedule {
 public:
  bool is_due(int64_t step) const { return step >= next_look_; }
  // Looked at `step`, at `now` seconds; returns the step of the next look.
  int64_t next_look(int64_t step, double now, double interval);
  void set_next_look(int64_t step) { next_look_ = step; }

 private:
  int64_t next_look_ = 0;
  std::optional<std::pair<int64_t, double>> last_;  // step and time
};

}  // namespace cpprun::snapshot
