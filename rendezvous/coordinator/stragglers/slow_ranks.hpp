// SlowRanks: finds the ranks of a round that compute more slowly than the others.
//
// A report has the mean compute time of the steps that a rank has made since its report before.
// Those steps are slow if that time is well above the newest one of the median rank. A rank is slow
// if k of its last n steps were (common/limits/stragglers.hpp). Compute time is without what a rank
// waits for others: in a collective all ranks take as long as the slowest.
//
// A core: no I/O, no clock.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <vector>

#include "common/ids.hpp"

namespace cpprun {

struct SlowRankChange {
  int64_t rank = 0;
  bool is_slow = false;    // else it was, and is no longer
  int64_t compute_us = 0;  // of its newest steps
  int64_t median_us = 0;   // of all ranks
  int64_t slow_steps = 0;  // of its last `steps`
  int64_t steps = 0;
};

class SlowRanks {
 public:
  // Forgets what another round has shown.
  void begin_round(RoundNumber round) {
    round_ = round;
    ranks_.clear();
    median_us_ = 0;
    since_median_ = 0;
  }
  RoundNumber round() const { return round_; }

  // A rank has made `steps` steps of `compute_us` each. Returns whether its state has changed.
  std::optional<SlowRankChange> add(int64_t rank, int64_t steps, int64_t compute_us);
  // The ranks that are slow now, in order.
  std::vector<SlowRankChange> slow() const;
  // Ranks whose compute time is known.
  size_t known() const { return ranks_.size(); }

 private:
  struct Sample {
    int64_t steps = 0;
    bool is_slow = false;
  };
  struct Track {
    std::deque<Sample> samples;
    int64_t steps = 0;       // of all samples
    int64_t slow_steps = 0;  // of the slow ones
    int64_t compute_us = 0;
    bool is_slow = false;
  };

  void update_median();
  static void keep(Track& track, Sample sample);
  SlowRankChange describe(int64_t rank, const Track& track) const;

  RoundNumber round_;
  std::map<int64_t, Track> ranks_;
  int64_t median_us_ = 0;
  size_t since_median_ = 0;  // samples since it was made
};

}  // namespace cpprun
