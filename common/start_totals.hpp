// StartTotals: how the workers of a job were started, on all nodes that the coordinator has known.
// Only grows. For people; no decision depends on it.
#pragma once

#include <array>
#include <cstdint>

#include "common/time.hpp"
#include "common/worker_starts.hpp"

namespace cpprun {

class StartTotals {
 public:
  // A node's report follows an earlier one; both count from the start of its agent. A number that
  // shrinks or jumps by more than any agent can start counts nothing.
  void add(const WorkerStarts& before, const WorkerStarts& now) {
    forked_ += grown(before.forked, now.forked);
    for (size_t i = 0; i < kSpawnReasons; ++i) {
      const auto reason = static_cast<SpawnReason>(i);
      spawned_[i] += grown(before.spawned_for(reason), now.spawned_for(reason));
    }
    using Milliseconds = std::chrono::milliseconds;
    saved_ms_ += grown(before.saved_time / Milliseconds(1), now.saved_time / Milliseconds(1));
  }

  int64_t forked() const { return forked_; }
  int64_t spawned(SpawnReason reason) const { return spawned_[static_cast<size_t>(reason)]; }
  int64_t saved_ms() const { return saved_ms_; }  // import time

 private:
  static int64_t grown(int64_t before, int64_t now) {
    constexpr int64_t kMost = int64_t{1} << 40;  // sums of some million reports do not overflow
    const bool is_fit = 0 <= before && before <= now && now <= kMost;
    return is_fit ? now - before : 0;
  }

  int64_t forked_ = 0;
  std::array<int64_t, kSpawnReasons> spawned_{};
  int64_t saved_ms_ = 0;
};

}  // namespace cpprun
