// LeaderFaults: what swarms share whose faults are about who leads a job: faults of a kind recur
// until a moment, what they began is over again after a while, and whoever leads is frozen, cut off
// or killed. Who that is, each kind of lives says for itself.
#pragma once

#include <functional>

#include "tests/support/sim/cluster.hpp"

namespace cpprun::sim {

class LeaderFaults {
 protected:
  LeaderFaults(Cluster& cluster, Prng prng, Instant end, Duration lasts_max)
      : cluster_(cluster), prng_(prng), end_(end), lasts_max_(lasts_max) {}
  ~LeaderFaults() = default;

  // Who is struck now; null: nobody.
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
