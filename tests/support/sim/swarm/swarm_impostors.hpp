// Swarm: strangers that say hello with the ids of nodes (R10), to whoever leads the job.
#pragma once

#include "tests/support/sim/cluster.hpp"
#include "tests/support/sim/dice.hpp"

namespace cpprun::sim {

class ImpostorFaults {
 public:
  // One each `mean`, until `end`; zero: none.
  ImpostorFaults(Cluster& cluster, Duration mean, Dice dice, Instant end)
      : cluster_(cluster), mean_(mean), dice_(dice), end_(end) {}

  void plan();

 private:
  Cluster& cluster_;
  const Duration mean_;
  Dice dice_;
  const Instant end_;
};

}  // namespace cpprun::sim
