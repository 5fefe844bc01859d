// Times that follow from a job's lease (docs/protocol.md, R5, R6, I1). Pure.
#pragma once

#include <algorithm>
#include <chrono>

#include "common/limits/rendezvous.hpp"
#include "common/time.hpp"

namespace cpprun {

// F: 0.8 of the lease L, lowered where inequality I1 demands it: whoever was granted so much has
// killed its workers before the lease ends elsewhere, however the two clocks drift.
inline Duration worker_lease_of(Duration lease) {
  constexpr int kDrift = limits::kClockDriftPercent;
  const Duration most =
      (lease / 100 * (100 - kDrift) - limits::kKillDuration) / (100 + kDrift) * 100;
  return std::min(lease / 5 * 4, most - std::chrono::milliseconds(1));
}

}  // namespace cpprun
