// Swarm: what goes wrong in lives whose arbiter is etcd (R18), beside what goes wrong in all: etcd
// out of reach of one host or all, down, slow, its answers lost; and whoever leads frozen, cut off,
// killed or without power.
#pragma once

#include <functional>
#include <string>

#include "tests/support/sim/cluster.hpp"

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
ElectedRates draw_elected(Dice dice, ClusterOptions& options);

class ElectedFaults {
 public:
  ElectedFaults(Cluster& cluster, ElectedRates rates, Dice dice, Instant end)
      : cluster_(cluster), rates_(rates), dice_(dice), end_(end) {}

  void plan();

 private:
  void again(Duration mean, std::function<void()> fault);
  void on_leader(Duration mean, std::function<void(Node&)> fault);
  void later(std::function<void()> what);
  void cut_way();

  Cluster& cluster_;
  const ElectedRates rates_;
  Dice dice_;
  const Instant end_;
};

}  // namespace cpprun::sim
