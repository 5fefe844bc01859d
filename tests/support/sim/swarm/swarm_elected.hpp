// Swarm: faults of jobs whose arbiter is etcd (R18), besides the general ones: etcd unreachable
// from one host or all, down, slow, with lost answers; and the leader frozen, disconnected, killed
// or without power.
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

// From a separate generator. Changes the options of coordinators.
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
