// Times that follow from a job's node lease (docs/protocol.md, R5, R6, I1). Pure.
#pragma once

#include <algorithm>
#include <chrono>

#include "common/limits/rendezvous.hpp"
#include "common/time.hpp"

namespace cpprun {

// The worker lease F: 0.8 of the node lease L, lowered where inequality I1 demands it. A node with
// this worker lease has killed its workers before its node lease ends at the coordinator, however
// the two clocks drift.
inline Duration worker_lease_of(Duration lease) {
  constexpr int kDrift = limits::kClockDriftPercent;
  const Duration most =
      (lease / 100 * (100 - kDrift) - limits::kKillDuration) / (100 + kDrift) * 100;
  return std::min(lease / 5 * 4, most - std::chrono::milliseconds(1));
}

// How often an agent pings. A ping and its answer must fit twice into the time before the agent
// sends SIGTERM to its workers.
inline Duration heartbeat_of(Duration lease, Duration wanted) {
  constexpr Duration kNotice = std::chrono::seconds(1);
  const Duration most = worker_lease_of(lease);
  const Duration safe = most < 2 * kNotice ? most / 2 : most - kNotice;
  return std::min(wanted, safe / 2);
}

}  // namespace cpprun
