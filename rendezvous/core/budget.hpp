// Budget of restarts: job-wide, the same number on every node (R7).
#pragma once

#include <cstdint>

#include "common/ids.hpp"

namespace cpprun {

// A round that ended by a worker's failure costs one, however many workers and nodes failed and
// however often it is reported. Losses and growth cost nothing.
class Budget {
 public:
  explicit Budget(int64_t max) : max_(max) {}

  // Charges a failure of `round` once. False: nothing is left to restart with.
  bool charge(RoundNumber round) {
    if (has_charged(round)) return true;
    last_charged_ = round;
    if (used_ >= max_) return false;
    ++used_;
    return true;
  }

  bool has_charged(RoundNumber round) const { return round <= last_charged_; }
  int64_t used() const { return used_; }
  int64_t max() const { return max_; }

 private:
  int64_t max_;
  int64_t used_ = 0;
  RoundNumber last_charged_;
};

}  // namespace cpprun
