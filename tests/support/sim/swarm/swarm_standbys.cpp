#include "tests/support/sim/swarm/swarm_standbys.hpp"

#include <array>

#include "tests/support/sim/swarm/fault_kinds.hpp"
#include "tests/support/sim/swarm/swarm.hpp"

namespace cpprun::sim {

using namespace std::chrono_literals;

namespace {

constexpr std::array<FaultKind<StandbyRates>, 6> kStandbyFaults{{
    {"freeze-leader", &StandbyRates::freeze_leader, 0.5},
    {"cut-leader", &StandbyRates::cut_leader, 0.4},
    {"hide-leader", &StandbyRates::hide_leader, 0.6},
    {"kill-leader", &StandbyRates::kill_leader, 0.5},
    {"power-leader", &StandbyRates::power_leader, 0.3},
    {"newcomers", &StandbyRates::newcomers, 1},
}};

// They would end the round, or the job, before any fault of the coordinator.
constexpr std::array kOthers{
    &FaultRates::black_hole,  &FaultRates::clog,  &FaultRates::cut_off,
    &FaultRates::one_way_cut, &FaultRates::kill,  &FaultRates::power,
    &FaultRates::freeze,      &FaultRates::pause, &FaultRates::signal,
    &FaultRates::fail_worker, &FaultRates::order, &FaultRates::cut_coordinator};

constexpr double kAboutStandbys = 0.13;

}  // namespace

std::string StandbyRates::text() const {
  std::string text = "\nstandbys:";
  append_means(text, kStandbyFaults, *this);
  return text;
}

void draw_standbys(Prng prng, SwarmPlan& plan) {
  if (!prng.chance(kAboutStandbys)) return;
  plan.cluster.is_first_embedded = true;
  control::JobSpec& job_spec = plan.cluster.job_spec;
  job_spec.max_nodes = prng.between(2, 4);
  job_spec.min_nodes = prng.between(1, job_spec.max_nodes);
  job_spec.lease = prng.chance(0.6) ? Duration(1s) : prng.between(Duration(1s), Duration(2s));
  job_spec.heartbeat = job_spec.lease / prng.between(3, 5);
  plan.nodes = job_spec.max_nodes + prng.below(2);
  plan.safety_phase = prng.between(Duration(8s), Duration(18s));
  plan.worker_runs_max = 60s;
  FaultRates& faults = plan.faults;
  for (const auto other : kOthers) {
    if (prng.chance(0.6)) faults.*other = Duration{};
  }
  if (prng.chance(0.7)) faults.worker_fails = 0;
  faults.does_coordinator_return = true;
  faults.kill_coordinator = prng.between(Duration(1s), Duration(8s));
  faults.coordinator_is_away_max = prng.chance(0.5) ? Duration(300ms) : Duration(3s);
  plan.cluster.clock_goes_back = prng.chance(0.2);
  plan.cluster.has_control_ports = true;
  plan.cluster.join_timeout = plan.cluster.clock_goes_back ? 20s : 60s;
  for (const auto& kind : kStandbyFaults) {
    if (prng.chance(kind.is_on))
      plan.standbys.*kind.mean = prng.between(Duration(500ms), Duration(6s));
  }
  plan.standbys.lasts_max = prng.between(Duration(1s), Duration(10s));
}

void StandbyFaults::plan() {
  again(rates_.newcomers, [this] { bring_newcomers(); });
  freeze_leader(rates_.freeze_leader);
  cut_leader(rates_.cut_leader);
  on_leader(rates_.hide_leader, [this](Node& node) { hide(node.spec().host); });
  kill_leader(rates_.kill_leader);
  on_leader(rates_.power_leader, [this](Node& node) {
    cluster_.cut_power(node);
    if (prng_.chance(0.5)) return;  // permanently: no node will ever know that it is dead
    later([this, host = node.spec().host] { cluster_.network().set_power(host, true); });
  });
}

// Its agents reach it, but the coordinator at the job's endpoint does not receive its announcement.
void StandbyFaults::hide(HostId host) {
  cluster_.network().cut(host, 0);
  cluster_.network().cut(0, host);
  later([this, host] {
    cluster_.network().mend(host, 0);
    cluster_.network().mend(0, host);
  });
  if (prng_.chance(0.7)) bring_newcomers();
}

void StandbyFaults::bring_newcomers() {
  const Duration within = prng_.chance(0.5) ? Duration(20ms) : Duration(1s);
  for (int64_t i = cluster_.options().job_spec.max_nodes; i > 0; --i) {
    cluster_.in(prng_.up_to(within), [this] {
      if (cluster_.nodes().size() < nodes_max_) cluster_.add_node();
    });
  }
}

// The newest standby that became coordinator; it may be frozen.
Node* StandbyFaults::leader() {
  const auto term_of = [](Node& node) { return node.coordinator()->spec().options.term; };
  Node* found = nullptr;
  for (const auto& node : cluster_.nodes()) {
    const CoordinatorProcess* lead = node->spec().is_own ? nullptr : node->coordinator();
    const bool leads = node->is_running() && lead != nullptr && lead->is_awake();
    if (leads && (found == nullptr || term_of(*found) < term_of(*node))) found = node.get();
  }
  return found;
}

}  // namespace cpprun::sim
