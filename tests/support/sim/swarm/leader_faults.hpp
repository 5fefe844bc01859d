// LeaderFaults: shared by swarms with faults of the coordinator: faults of a kind recur until a
// given time, each ends after a while, and the leading process is frozen, disconnected or killed.
// Each swarm chooses the target itself.
#pragma once

#include <functional>

#include "tests/support/sim/cluster.hpp"

namespace cpprun::sim {

class LeaderFaults {
 protected:
  LeaderFaults(Cluster& cluster, Prng prng, Instant end, Duration lasts_max)
      : cluster_(cluster), prng_(prng), end_(end), lasts_max_(lasts_max) {}
  ~LeaderFaults() = default;

  // The target of a fault now; null: none.
  virtual Node* leader() = 0;

  // `mean`: time between two; zero: there are none.
  void again(Duration mean, std::function<void()> fault);
  void on_leader(Duration mean, std::function<void(Node&)> fault);
  void freeze_leader(Duration mean);
  void cut_leader(Duration mean);
  void kill_leader(Duration mean);
  void later(std::function<void()> what);

  Cluster& cluster_;
  Prng prng_;

 private:
  const Instant end_;
  const Duration lasts_max_;
};

}  // namespace cpprun::sim
