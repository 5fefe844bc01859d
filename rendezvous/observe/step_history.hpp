// StepHistory: how long steps took, for the plot of who opens the dashboard later. It knows what
// nodes told, and so only of times at which somebody watched. Bounded; a core: no clock.
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

// One moment of all ranks. Steps: -1 if no rank tells. Times in microseconds, of the ranks that
// tell how long their step took; nothing if none does.
struct StepPoint {
  Instant at;
  RoundNumber round;
  int64_t step = -1;  // of the rank that is furthest
  int64_t last = -1;  // of the one that is furthest behind
  std::optional<int64_t> median_us{};
  std::optional<int64_t> slowest_us{};
  int64_t slowest_rank = -1;  // the first of them

  // Tells the same, at whatever time.
  bool is_same_as(const StepPoint& other) const;
};
StepPoint point_of(Instant at, const RankProgress& told);

class StepHistory {
 public:
  // Once a second at most: takes what is news, and forgets jobs that the coordinator has forgotten.
  void update(Instant now, const Coordinator& coordinator);
  // By run id; oldest first, at most limits::kStepPoints each.
  const std::map<std::string, std::deque<StepPoint>>& jobs() const { return jobs_; }

 private:
  std::map<std::string, std::deque<StepPoint>> jobs_;
};

}  // namespace cpprun
