// Swarm: the parameters that a seed draws.
#include <array>

#include "tests/support/sim/swarm/fault_kinds.hpp"
#include "tests/support/sim/swarm/swarm.hpp"

namespace cpprun::sim {

using namespace std::chrono_literals;

namespace {

using Kind = FaultKind<FaultRates>;
constexpr std::array<Kind, 15> kKinds{{
    {"break", &FaultRates::break_connection, 0.6},
    {"black-hole", &FaultRates::black_hole, 0.25},
    {"clog", &FaultRates::clog, 0.3},
    {"cut-off", &FaultRates::cut_off, 0.4},
    {"one-way-cut", &FaultRates::one_way_cut, 0.3},
    {"kill", &FaultRates::kill, 0.5},
    {"power", &FaultRates::power, 0.2},
    {"freeze", &FaultRates::freeze, 0.5},
    {"pause", &FaultRates::pause, 0.3},
    {"signal", &FaultRates::signal, 0.15},
    {"arrive", &FaultRates::arrive, 0.5},
    {"fail-worker", &FaultRates::fail_worker, 0.4},
    {"kill-coordinator", &FaultRates::kill_coordinator, 0.12},
    {"freeze-coordinator", &FaultRates::freeze_coordinator, 0.2},
    {"cut-coordinator", &FaultRates::cut_coordinator, 0.15},
}};

// From a separate generator.
constexpr std::array<Kind, 5> kMoreKinds{{
    {"order", &FaultRates::order, 0},
    {"planned_fault", &FaultRates::planned_fault, 0},
    {"slow-reader", &FaultRates::slow_reader, 0},
    {"slow-coordinator", &FaultRates::slow_coordinator, 0},
    {"disk-full", &FaultRates::disk_full, 0},
}};

void draw_faults(Prng& prng, Size size, FaultRates& faults) {
  for (const Kind& kind : kKinds) {
    if (!prng.chance(kind.is_on)) continue;
    faults.*kind.mean = size == Size::Small ? prng.between(Duration(300ms), Duration(8s))
                                            : prng.between(Duration(3s), Duration(12s));
  }
  faults.does_coordinator_return = prng.chance(0.85);
  if (size == Size::Large) return;
  faults.worker_fails = prng.chance(0.4) ? 0.02 + 0.15 * prng.share() : 0;
  faults.worker_is_deaf = prng.chance(0.4) ? 0.3 * prng.share() : 0;
  faults.worker_hangs = prng.chance(0.3) ? 0.5 * prng.share() : 0;
  faults.spawn_fails = prng.chance(0.1) ? 0.05 * prng.share() : 0;
}

// From a separate generator, so that earlier seeds keep their parameters.
void draw_snapshots(Prng prng, Size size, SwarmPlan& plan) {
  if (size == Size::Large || prng.chance(0.4)) return;
  plan.cluster.has_snapshots = prng.chance(0.8);
  plan.faults.worker_saves = prng.chance(0.8) ? 0.5 + 0.5 * prng.share() : 0;
  plan.faults.fetch_fails = prng.chance(0.5) ? 0.3 * prng.share() : 0;
  if (prng.chance(0.4)) plan.faults.signal = prng.between(Duration(300ms), Duration(8s));
}

// From a separate generator, as above: coordinators that die repeatedly, and return.
void draw_coordinators(Prng prng, Size size, SwarmPlan& plan) {
  if (size == Size::Small && prng.chance(0.4)) {
    plan.faults.kill_coordinator = prng.between(Duration(500ms), Duration(8s));
  }
  if (prng.chance(0.5)) plan.faults.coordinator_is_away_max = Duration(600ms);
  plan.cluster.has_control_ports = prng.chance(0.7);
}

// From a separate generator, as above.
void draw_orders(Prng prng, Size size, SwarmPlan& plan) {
  if (size == Size::Large || prng.chance(0.7)) return;
  plan.faults.order = prng.between(Duration(500ms), Duration(8s));
}

// From separate generators, seeded so that the runs of seeds.txt stay the same.
constexpr uint64_t kExtras = 5287;
constexpr uint64_t kStandbys = 846;
constexpr uint64_t kElectedExtras = 248;
constexpr uint64_t kImpostors = 45;

Duration draw_impostors(Prng prng, Size size) {
  if (size == Size::Large || !prng.chance(0.1)) return {};
  return prng.between(Duration(200ms), Duration(4s));
}

void draw_extras(Prng prng, Size size, SwarmPlan& plan) {
  if (size == Size::Large || prng.chance(0.6)) return;
  const auto mean = [&] { return prng.between(Duration(300ms), Duration(8s)); };
  FaultRates& faults = plan.faults;
  if (prng.chance(0.4)) faults.slow_reader = mean();
  if (prng.chance(0.3)) faults.slow_coordinator = mean();
  if (prng.chance(0.5)) faults.planned_fault = mean();
  if (prng.chance(0.4)) faults.worker_is_late = prng.share();
  plan.worker_ready_max = prng.between(Duration(100ms), Duration(4s));
  if (!plan.cluster.has_snapshots) return;
  if (prng.chance(0.4)) faults.disk_full = mean();
  if (prng.chance(0.6)) plan.saves_each = Duration(1ms) * prng.between(20, 1000);
  if (prng.chance(0.3)) faults.resume_is_unusable = 0.5 * prng.share();
}

// Likewise.
constexpr uint64_t kStuck = 27066;
constexpr uint64_t kElectedStuck = 62;

void draw_stuck(Prng prng, Size size, FaultRates& faults) {
  if (size == Size::Large || prng.chance(0.7)) return;
  faults.worker_outlives_kill = 0.05 + 0.45 * prng.share();
}

// Likewise. With more failures than restarts a job ends before a host is excluded.
constexpr uint64_t kExclusions = 73;

void draw_exclusion(Prng prng, Size size, SwarmPlan& plan) {
  if (size == Size::Large || prng.chance(0.7)) return;
  plan.cluster.job_spec.exclude_after = prng.between(1, 3);
  if (prng.chance(0.3)) plan.faults.order = prng.between(Duration(500ms), Duration(8s));
  if (prng.chance(0.5)) plan.faults.worker_fails = 0.02 + 0.3 * prng.share();
  if (prng.chance(0.2)) plan.faults.spawn_fails = 0.1 * prng.share();
}

// Likewise.
constexpr uint64_t kLinks = 4817;

void draw_links(Prng prng, Size size, SwarmPlan& plan) {
  if (size == Size::Large || prng.chance(0.8)) return;
  plan.cluster.job_spec.link_check_bytes = 16 << 20;
  plan.faults.bad_links = 0.6 * prng.share();
}

// Likewise.
constexpr uint64_t kBudgets = 26609;

void draw_budgets(Prng prng, Size size, SwarmPlan& plan) {
  if (size == Size::Large || prng.chance(0.8)) return;
  control::JobSpec& job_spec = plan.cluster.job_spec;
  if (prng.chance(0.8)) job_spec.max_node_losses = prng.below(5);
  if (prng.chance(0.3)) job_spec.restart_backoff = prng.between(Duration(10ms), Duration(200ms));
  if (prng.chance(0.5)) plan.faults.worker_fails = 0.02 + 0.2 * prng.share();
  if (prng.chance(0.3)) plan.faults.kill = prng.between(Duration(300ms), Duration(4s));
}

// Likewise.
constexpr uint64_t kRegroup = 80671;

void draw_regroup(Prng prng, Size size, FaultRates& faults) {
  if (size == Size::Large || prng.chance(0.7)) return;
  faults.worker_regroups = 0.3 + 0.7 * prng.share();
}

void draw_job_spec(Prng& prng, control::JobSpec& job_spec) {
  job_spec.max_nodes = prng.between(1, 5);
  job_spec.min_nodes = prng.chance(0.3) ? job_spec.max_nodes : prng.between(1, job_spec.max_nodes);
  job_spec.max_restarts = prng.below(7);
  job_spec.lease = prng.chance(0.5) ? Duration(1s) : prng.between(Duration(1s), Duration(6s));
  job_spec.heartbeat = job_spec.lease / prng.between(3, 8);
  job_spec.scale_up_interval = prng.up_to(4s);
  if (prng.chance(0.3)) job_spec.last_call = prng.up_to(2s);
  job_spec.is_agent_store = prng.chance(0.2);
}

}  // namespace

SwarmPlan draw_plan(uint64_t seed, Size size, int64_t large_nodes) {
  const bool is_elected = size == Size::Elected;
  if (is_elected) size = Size::Small;  // everything else is equal
  const Duration impostors = draw_impostors(Prng(seed).child(kImpostors), size);
  Prng prng(seed * 2 + (size == Size::Large ? 1 : 0));
  if (is_elected) prng = prng.child(18);
  SwarmPlan plan;
  plan.impostors = impostors;
  ClusterOptions& cluster = plan.cluster;
  cluster.seed = prng.next();
  if (size == Size::Small) {
    draw_job_spec(prng, cluster.job_spec);
    plan.nodes = std::min<int64_t>(8, cluster.job_spec.max_nodes + prng.below(3));
    cluster.nproc = prng.between(1, 3);
    plan.safety_phase = prng.between(Duration(2s), Duration(16s));
    cluster.stop_grace = prng.between(Duration(200ms), Duration(5s));
  } else {
    plan.nodes = cluster.job_spec.max_nodes = large_nodes;
    cluster.job_spec.min_nodes = large_nodes * 9 / 10;
    cluster.job_spec.max_restarts = 100;
    plan.safety_phase = 12s;
    plan.worker_runs_max = 60s;
    cluster.stop_grace = 2s;
  }
  cluster.join_timeout = 120s;
  cluster.is_first_embedded = prng.chance(0.4);
  cluster.network.latency_max = prng.between(Duration(100us), Duration(20ms));
  if (prng.chance(0.5)) cluster.network.delay_mean = prng.between(Duration(100us), Duration(30ms));
  cluster.network.split = prng.chance(0.5) ? 0.2 * prng.share() : 0;
  cluster.drift_ppm_max = prng.chance(0.7) ? 20'000 : 100;
  plan.fault_lasts_max = prng.between(Duration(500ms), Duration(10s));
  draw_faults(prng, size, plan.faults);
  draw_snapshots(prng.child(3), size, plan);
  draw_coordinators(prng.child(4), size, plan);
  draw_orders(prng.child(5), size, plan);
  draw_exclusion(Prng(seed).child(kExclusions), size, plan);
  draw_links(Prng(seed).child(kLinks), size, plan);
  draw_budgets(Prng(seed).child(kBudgets), size, plan);
  if (!is_elected) {
    draw_extras(Prng(seed).child(kExtras), size, plan);
    draw_stuck(Prng(seed).child(kStuck), size, plan.faults);
    draw_regroup(Prng(seed).child(kRegroup), size, plan.faults);
    if (size == Size::Small) draw_standbys(Prng(seed).child(kStandbys), plan);
    return plan;
  }
  plan.elected = draw_elected(prng.child(6), cluster);
  FaultRates& faults = plan.faults;
  faults.kill_coordinator = faults.freeze_coordinator = faults.cut_coordinator = Duration{};
  faults.does_coordinator_return = false;
  draw_extras(Prng(seed).child(kElectedExtras), size, plan);
  draw_stuck(Prng(seed).child(kElectedStuck), size, faults);
  return plan;
}

std::string SwarmPlan::text() const {
  const control::JobSpec& job_spec = cluster.job_spec;
  std::string text =
      "nnodes=" + std::to_string(job_spec.min_nodes) + ":" + std::to_string(job_spec.max_nodes) +
      " nodes=" + std::to_string(nodes) + " nproc=" + std::to_string(cluster.nproc) +
      " max-restarts=" + std::to_string(job_spec.max_restarts) +
      (job_spec.exclude_after > 0 ? " exclude-after=" + std::to_string(job_spec.exclude_after)
                                  : "") +
      (job_spec.link_check_bytes > 0 ? " link-check" : "") +
      (job_spec.max_node_losses >= 0
           ? " max-node-losses=" + std::to_string(job_spec.max_node_losses)
           : "") +
      (cluster.is_first_embedded ? " first-node-is-host" : "") +
      (cluster.has_control_ports ? " standbys" : "") +
      (cluster.clock_goes_back ? " clock-goes-back" : "");
  append(text, " %s=%.2fs", "lease", to_seconds(job_spec.lease));
  append(text, " %s=%.2fs", "heartbeat", to_seconds(job_spec.heartbeat));
  append(text, " %s=%.2fs", "grace", to_seconds(cluster.stop_grace));
  if (job_spec.restart_backoff > Duration{}) {
    append(text, " %s=%.2fs", "restart-backoff", to_seconds(job_spec.restart_backoff));
  }
  append(text, "\n%s=%.2fms", "latency", to_seconds(cluster.network.latency_max) * 1e3);
  append(text, " %s=%.2fms", "delay", to_seconds(cluster.network.delay_mean) * 1e3);
  append(text, " %s=%.0fppm", "drift", static_cast<double>(cluster.drift_ppm_max));
  append(text, " %s=%.2fs", "safety-phase", to_seconds(safety_phase));
  text += "\nmean time between faults:";
  append_means(text, kKinds, faults);
  append_means(text, kMoreKinds, faults);
  text += "\nworkers:";
  append(text, " %s=%.3f", "fail", faults.worker_fails);
  append(text, " %s=%.3f", "deaf", faults.worker_is_deaf);
  append(text, " %s=%.3f", "hang", faults.worker_hangs);
  append(text, " %s=%.3f", "spawn-fails", faults.spawn_fails);
  append(text, " %s=%.3f", "outlive-kill", faults.worker_outlives_kill);
  append(text, " %s=%.3f", "save", faults.worker_saves);
  if (faults.bad_links > 0) append(text, " %s=%.3f", "bad-links", faults.bad_links);
  if (faults.worker_regroups > 0) append(text, " %s=%.3f", "regroup", faults.worker_regroups);
  if (faults.worker_is_late > 0) {
    append(text, " %s=%.3f", "late", faults.worker_is_late);
    append(text, " %s=%.2fs", "ready-within", to_seconds(worker_ready_max));
  }
  if (cluster.has_snapshots) {
    append(text, "\nsnapshots: %s=%.3f", "fetch-fails", faults.fetch_fails);
    append(text, " %s=%.3f", "unusable", faults.resume_is_unusable);
    append(text, " %s=%.2fs", "saved-each", to_seconds(saves_each));
  }
  if (cluster.has_etcd) text += elected.text();
  if (standbys.are_on()) text += standbys.text();
  if (impostors > Duration{}) append(text, "\n%s=%.2fs", "impostors", to_seconds(impostors));
  return text;
}

}  // namespace cpprun::sim
