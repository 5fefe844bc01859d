// Swarm: what goes wrong in lives whose arbiter is etcd (R18), beside what goes wrong in all: etcd
// out of reach of one host or all, down, slow, its answers lost; and whoever leads frozen, cut off,
// killed or without power.
#pragma once

#include <string>

#include "tests/support/sim/swarm/leader_faults.hpp"

namespace cpprun::sim {

// Mean time between faults of each kind; zero: there are none.
struct ElectedRates {
  Duration cut_way{}, cut_etcd{}, stop_etcd{};
  Duration freeze_leader{}, cut_leader{}, kill_leader{}, power_leader{}, blind_leader{};
  double loses_answers = 0;
  double lingers = 0;
  Duration lasts_max = std::chrono::seconds(8);

  std::string text() const;
};

// From dice of its own. Changes what the options say of coordinators.
ElectedRates draw_elected(Prng prng, ClusterOptions& options);

class ElectedFaults final : private LeaderFaults {
 public:
  ElectedFaults(Cluster& cluster, ElectedRates rates, Prng prng, Instant end)
      : LeaderFaults(cluster, prng, end, rates.lasts_max), rates_(rates) {}

  void plan();

 private:
  Node* leader() override;
  void cut_way();

  const ElectedRates rates_;
};

}  // namespace cpprun::sim
