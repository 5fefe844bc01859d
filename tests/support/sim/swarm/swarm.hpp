// Swarm: one random simulation of a job. A seed draws the job's options, and the kinds of faults
// and their rates. In a first phase faults happen, and only safety is checked; then all faults end,
// and the job must continue, or end, in bounded time.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tests/support/sim/cluster.hpp"
#include "tests/support/sim/swarm/swarm_elected.hpp"
#include "tests/support/sim/swarm/swarm_standbys.hpp"

namespace cpprun::sim {

// Mean time between faults of each kind over the whole cluster; zero: there are none.
struct FaultRates {
  Duration break_connection{}, black_hole{}, clog{}, cut_off{}, one_way_cut{};
  Duration kill{}, power{}, freeze{}, pause{}, signal{}, arrive{}, fail_worker{};
  Duration kill_coordinator{}, freeze_coordinator{}, cut_coordinator{};
  Duration order{};          // of an admin command, at some node
  Duration planned_fault{};  // of a fault of the job's plan, at some node
  Duration slow_reader{}, slow_coordinator{}, disk_full{};
  bool does_coordinator_return = true;
  Duration coordinator_is_away_max{};  // zero: as long as any fault
  double worker_fails = 0;             // probability for each worker in each round
  double worker_is_deaf = 0;
  double worker_hangs = 0;
  double worker_outlives_kill = 0;
  double spawn_fails = 0;  // probability for each node in each round
  double worker_saves = 0;
  double worker_regroups = 0;
  double bad_links = 0;  // share of the nodes, until the faults end
  double fetch_fails = 0;
  double worker_is_late = 0;      // probability for each worker in each round
  double resume_is_unusable = 0;  // probability for each node in each round
};

struct SwarmPlan {
  ClusterOptions cluster;
  int64_t nodes = 1;  // at first
  FaultRates faults;
  ElectedRates elected;   // where etcd is the arbiter
  StandbyRates standbys;  // in simulations of standbys
  Duration impostors{};   // mean time between them; zero: there are none
  Duration safety_phase{};
  Duration worker_runs_max = std::chrono::seconds(4);
  Duration fault_lasts_max = std::chrono::seconds(8);
  Duration worker_ready_max = std::chrono::seconds(3);  // of late nodes
  Duration saves_each{};  // interval of the workers' saves; zero: none

  std::string text() const;  // all drawn parameters, on a few lines
};

enum class Size { Small, Large, Elected };  // at most 8 nodes, many, or 8 with etcd
inline constexpr int64_t kLargeNodes = 10'000;
// `large_nodes`: of Size::Large.
SwarmPlan draw_plan(uint64_t seed, Size size, int64_t large_nodes = kLargeNodes);

struct SwarmResult {
  std::vector<std::string> broken;  // violated properties
  uint64_t hash = 0;
  int64_t rounds = 0;
  uint64_t events = 0;
  int64_t successes = 0;  // nodes that ended with success
};

// Runs one simulation; writes its trace to `sink` if there is one.
SwarmResult run_swarm(const SwarmPlan& plan,
                      const std::function<void(const std::string&)>& sink = nullptr);

}  // namespace cpprun::sim
