// Swarm: faults of the coordinator (R14 to R17): coordinators at the endpoint die and return while
// a standby leads; the leading process is killed, frozen, disconnected, or cut off from the
// endpoint alone; and new nodes come to the endpoint meanwhile.
#pragma once

#include <string>

#include "tests/support/sim/swarm/leader_faults.hpp"

namespace cpprun::sim {

// Mean time between faults of each kind, where a standby leads the job; zero: there are none.
struct StandbyRates {
  Duration freeze_leader{}, cut_leader{}, hide_leader{}, kill_leader{}, power_leader{};
  Duration newcomers{};  // as many as a round has places for, at once or within a second
  Duration lasts_max = std::chrono::seconds(4);

  bool are_on() const { return newcomers > Duration{}; }
  std::string text() const;
};

struct SwarmPlan;
// From a separate generator. Some simulations are about standbys: they draw the job's options and
// their coordinator's faults again.
void draw_standbys(Prng prng, SwarmPlan& plan);

class StandbyFaults final : private LeaderFaults {
 public:
  // No more agents are started once there have been `nodes_max`.
  StandbyFaults(Cluster& cluster, StandbyRates rates, Prng prng, Instant end, size_t nodes_max)
      : LeaderFaults(cluster, prng, end, rates.lasts_max), rates_(rates), nodes_max_(nodes_max) {}

  void plan();

 private:
  Node* leader() override;
  void hide(HostId host);
  void bring_newcomers();

  const StandbyRates rates_;
  const size_t nodes_max_;
};

}  // namespace cpprun::sim
