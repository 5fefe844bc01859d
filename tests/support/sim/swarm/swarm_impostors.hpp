// Swarm: impostors, copies of agents and replays of what they sent (R10), at the job's coordinator.
#pragma once

#include "tests/support/sim/cluster.hpp"
#include "tests/support/sim/prng.hpp"

namespace cpprun::sim {

class ImpostorFaults {
 public:
  // One each `mean`, until `end`; zero: none.
  ImpostorFaults(Cluster& cluster, Duration mean, Prng prng, Instant end)
      : cluster_(cluster), mean_(mean), prng_(prng), kinds_(prng.child(1)), end_(end) {}

  void plan();

 private:
  Cluster& cluster_;
  const Duration mean_;
  Prng prng_;
  Prng kinds_;
  const Instant end_;
};

}  // namespace cpprun::sim
