// StepHistory: durations of past steps, for the plot of a dashboard that is opened later. Nodes
// report progress while a dashboard is open and at the end of each round, so it covers only those.
// Bounded. Pure.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>

#include "common/time.hpp"
#include "rendezvous/coordinator/coordinator.hpp"
#include "rendezvous/coordinator/rank_progress.hpp"

namespace cpprun {

// All ranks at one time. Steps: -1 if no rank reports. Times in microseconds, over the ranks that
// report the duration of their step; empty if none does.
struct StepPoint {
  Instant at;
  RoundNumber round;
  int64_t step = -1;  // of the rank that is furthest ahead
  int64_t last = -1;  // of the rank that is furthest behind
  std::optional<int64_t> median_us{};
  std::optional<int64_t> slowest_us{};
  int64_t slowest_rank = -1;  // the first one if several are equal

  // Equal except for the time.
  bool is_same_as(const StepPoint& other) const;
};
StepPoint point_of(const RankProgress& progress);

class StepHistory {
 public:
  // Call at most once a second. Adds new points and forgets jobs that the coordinator forgot.
  void update(const Coordinator& coordinator);
  // By run id; oldest first, at most limits::kStepPoints each.
  const std::map<std::string, std::deque<StepPoint>>& jobs() const { return jobs_; }

 private:
  std::map<std::string, std::deque<StepPoint>> jobs_;
};

}  // namespace cpprun
