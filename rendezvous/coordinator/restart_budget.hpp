// Budget of restarts: job-wide, the same number on every node (R7).
#pragma once

#include <algorithm>
#include <cstdint>

#include "common/ids.hpp"

namespace cpprun {

// A round that ended by a worker's failure costs one, however many workers and nodes failed and
// however often it is reported. Losses and growth cost nothing.
class RestartBudget {
 public:
  explicit RestartBudget(int64_t max, int64_t used = 0) : max_(max), used_(used) {}

  // Charges a failure of `round` once. False: nothing is left to restart with.
  bool charge(RoundNumber round) {
    if (has_charged(round)) return true;
    last_charged_ = round;
    if (used_ >= max_) return false;
    ++used_;
    return true;
  }

  bool has_charged(RoundNumber round) const { return round <= last_charged_; }
  // Somebody knows of more than we do.
  void learn(int64_t used) { used_ = std::max(used_, used); }
  int64_t used() const { return used_; }
  int64_t max() const { return max_; }

 private:
  int64_t max_;
  int64_t used_;
  RoundNumber last_charged_;
};

}  // namespace cpprun
