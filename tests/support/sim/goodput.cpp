#include "tests/support/sim/goodput.hpp"

#include <array>
#include <cstdio>

#include "tests/support/sim/cluster.hpp"

namespace cpprun::sim {

using namespace std::chrono_literals;

namespace {

constexpr int64_t kWorkersPerNode = 8;
constexpr int64_t kFewerAreEnough = 20;  // --nnodes=(max - 20):max

class GoodputRun {
 public:
  explicit GoodputRun(const GoodputOptions& options)
      : options_(options), cluster_(cluster_options(options)), prng_(options.seed ^ 0x600D) {
    cluster_.set_plan([this](const Node&, const control::RankAssignment& assignment) {
      assignment_ = assignment;
      WorkerBehavior liveness;
      liveness.is_hanging = true;  // trains until a failure
      liveness.stops_in = options_.stop_takes;
      return SpawnPlan{false, std::vector<WorkerBehavior>(kWorkersPerNode, liveness)};
    });
    cluster_.when_workers_change([this] { account(); });
  }

  GoodputResult run() {
    cluster_.start_coordinator();
    for (int64_t i = 0; i < options_.nodes + options_.spares; ++i) {
      cluster_.in(prng_.up_to(1s), [this] { cluster_.add_node(); });
    }
    cluster_.run_for(10s);
    begun_ = changed_ = cluster_.now();
    plan_fault();
    cluster_.run_until(begun_ + options_.lasts);
    account();
    return result();
  }

 private:
  static ClusterOptions cluster_options(const GoodputOptions& options) {
    ClusterOptions made;
    made.seed = options.seed;
    made.nproc = kWorkersPerNode;
    made.job_spec.max_nodes = options.nodes;
    made.job_spec.min_nodes = std::max<int64_t>(1, options.nodes - kFewerAreEnough);
    made.job_spec.max_restarts = 1'000'000;
    made.job_spec.lease = options.lease;
    made.job_spec.heartbeat = options.heartbeat;
    made.network.delay_mean = 100us;
    made.network.split = 0;
    return made;
  }

  void plan_fault() {
    Duration mean = options_.node_fails_each / static_cast<int64_t>(options_.nodes);
    cluster_.in(prng_.until_event(mean), [this] {
      Node& node = *cluster_.nodes()[static_cast<size_t>(
          prng_.below(static_cast<int64_t>(cluster_.nodes().size())))];
      if (node.is_running() && !node.is_frozen()) fault(node);
      plan_fault();
    });
  }

  // Fractions follow the causes counted on large clusters: most are a device under a worker.
  void fault(Node& node) {
    ++faults_;
    const double prng = prng_.share();
    if (prng < 0.55) return node.fail_worker(static_cast<size_t>(prng_.below(kWorkersPerNode)), 1);
    if (prng < 0.75) {
      cluster_.cut_power(node);
      return later([this, &node] {
        cluster_.network().set_power(node.spec().host, true);
        cluster_.restart(node);
      });
    }
    if (prng < 0.85) {
      cluster_.network().cut_off(node.spec().host);
      return later([this, &node] { cluster_.network().mend_host(node.spec().host); });
    }
    if (prng < 0.95) {
      cluster_.freeze(node);
      return later([this, &node] { cluster_.thaw(node); });
    }
    cluster_.kill(node);
    later([this, &node] { cluster_.restart(node); });
  }
  void later(std::function<void()> what) {
    cluster_.in(prng_.until_event(options_.repair_takes), std::move(what));
  }

  // Books the state since the last change.
  void account() {
    const Duration passed = cluster_.now() - changed_;
    changed_ = cluster_.now();
    *current_ += passed;
    const int64_t live = cluster_.checks().live_workers();
    const bool is_whole = live > 0 && live == assignment_.world_size;
    current_ = live == 0                                  ? &waiting_
               : !is_whole                                ? &stopping_
               : assignment_.group_size == options_.nodes ? &full_
                                                          : &smaller_;
  }

  double share(Duration of) const { return to_seconds(of) / to_seconds(options_.lasts); }

  GoodputResult result() {
    GoodputResult made;
    made.full = share(full_);
    made.smaller = share(smaller_);
    made.stopping = share(stopping_);
    made.waiting = share(waiting_);
    made.rounds = cluster_.checks().rounds_formed();
    made.faults = faults_;
    made.events = cluster_.event_queue().steps();
    made.broken = cluster_.checks().broken();
    return made;
  }

  const GoodputOptions options_;
  Cluster cluster_;
  Prng prng_;
  control::RankAssignment assignment_;  // the newest that any node has started
  Instant begun_;
  Instant changed_;
  Duration full_{}, smaller_{}, stopping_{}, waiting_{}, before_{};
  Duration* current_ = &before_;
  int64_t faults_ = 0;
};

}  // namespace

std::string GoodputResult::text() const {
  std::array<char, 400> text{};
  std::snprintf(text.data(), text.size(),
                "%lld faults, %lld rounds, %llu events\n"
                "  %8.4f %%  all workers of the largest world ran\n"
                "  %8.4f %%  all workers of a smaller world ran\n"
                "  %8.4f %%  a fault was not known yet, or workers were stopping or starting\n"
                "  %8.4f %%  no worker ran\n",
                static_cast<long long>(faults), static_cast<long long>(rounds),
                static_cast<unsigned long long>(events), full * 100, smaller * 100, stopping * 100,
                waiting * 100);
  return text.data();
}

GoodputResult run_goodput(const GoodputOptions& options) { return GoodputRun(options).run(); }

}  // namespace cpprun::sim
