#include "tests/support/sim/swarm/swarm.hpp"

#include <algorithm>
#include <map>

#include "common/limits/rendezvous.hpp"
#include "rendezvous/coordinator/repeats/restart_backoff.hpp"
#include "tests/support/sim/swarm/swarm_impostors.hpp"

namespace cpprun::sim {

using namespace std::chrono_literals;

namespace {

constexpr int kSigTerm = 15;
constexpr Duration kSignalAgain = std::chrono::milliseconds(15);
constexpr Duration kFindingTakes = 3s;  // until every node knows the coordinator
constexpr size_t kUnreadMax =
    64 * 1024;  // of one connection; the coordinator does not write to a lost node

class SwarmRun {
 public:
  explicit SwarmRun(const SwarmPlan& plan)
      : plan_(plan), cluster_(plan.cluster), prng_(plan.cluster.seed ^ 0xFA17) {
    cluster_.set_plan([this](const Node& node, const control::RankAssignment& assignment) {
      return workers_of(node, assignment);
    });
    cluster_.set_fetch_plan([this] { return a_fetch(); });
    cluster_.set_link_plan(
        [this](const Node& node, int64_t peer_port) { return a_link(node, peer_port); });
  }

  SwarmResult run(const std::function<void(const std::string&)>& sink) {
    if (sink) cluster_.trace().listen(Trace::Detail::All, sink);
    if (!plan_.cluster.has_etcd) cluster_.start_coordinator();
    for (int64_t i = 0; i < plan_.nodes; ++i) arrive_in(prng_.up_to(2s));
    faults_end_ = cluster_.now() + plan_.safety_phase;
    plan_faults();
    ElectedFaults elected(cluster_, plan_.elected, prng_.child(6), faults_end_);
    if (plan_.cluster.has_etcd) elected.plan();
    StandbyFaults standbys(cluster_, plan_.standbys, prng_.child(7), faults_end_, nodes_max());
    standbys.plan();
    ImpostorFaults impostors(cluster_, plan_.impostors, prng_.child(8), faults_end_);
    impostors.plan();
    cluster_.run_until(faults_end_);
    cluster_.checks().note_links_mended();
    heal();
    judge_liveness();
    const bool keeps_limits = cluster_.network().most_waiting_bytes() <= kUnreadMax;
    cluster_.checks().require(keeps_limits, "limits: a connection holds too many unread bytes");
    return result();
  }

 private:
  size_t nodes_max() const { return static_cast<size_t>(plan_.nodes) + 12; }
  bool are_faults_on() const { return cluster_.now() < faults_end_; }
  void later(std::function<void()> what) {
    cluster_.in(prng_.up_to(plan_.fault_lasts_max), std::move(what));
  }
  void arrive_in(Duration delay) {
    cluster_.in(delay, [this] {
      if (cluster_.nodes().size() < nodes_max()) cluster_.add_node();
    });
  }

  // ---------------------------------------------------------------- workers

  SpawnPlan workers_of(const Node& node, const control::RankAssignment&) {
    const FaultRates& faults = plan_.faults;
    SpawnPlan made;
    made.fails = are_faults_on() && prng_.chance(faults.spawn_fails);
    for (int64_t i = 0; i < node.spec().agent.facts.nproc; ++i) made.lives.push_back(a_worker());
    const bool may_be_unusable = are_faults_on() && faults.resume_is_unusable > 0;
    made.is_resume_unusable = may_be_unusable && extra_dice_.chance(faults.resume_is_unusable);
    return made;
  }

  FetchPlan a_fetch() {
    FetchPlan made;
    made.takes = snapshot_dice_.up_to(are_faults_on() ? Duration(4s) : Duration(200ms));
    if (!are_faults_on()) return made;
    made.fails = snapshot_dice_.chance(plan_.faults.fetch_fails);
    made.is_damaged = snapshot_dice_.chance(0.5);
    return made;
  }

  // A node's link is bad or good until the faults end.
  LinkPlan a_link(const Node& node, int64_t peer_port) {
    LinkPlan made;
    made.takes = 1ms + link_dice_.up_to(500ms);
    const int64_t own_port = node.spec().agent.facts.link_port;
    const bool fails = has_bad_link(own_port) || has_bad_link(peer_port);
    made.fails = are_faults_on() && fails;
    return made;
  }
  bool has_bad_link(int64_t port) {
    Prng dice = bad_links_.child(static_cast<uint64_t>(port));
    const bool is_bad = dice.chance(plan_.faults.bad_links);
    if (is_bad) cluster_.checks().note_bad_link(port);
    return is_bad;
  }

  WorkerBehavior a_worker() {
    const FaultRates& faults = plan_.faults;
    WorkerBehavior liveness;
    liveness.runs = 10ms + prng_.up_to(are_faults_on() ? plan_.worker_runs_max : Duration(1s));
    liveness.stops_in = prng_.up_to(300ms);
    liveness.can_save = snapshot_dice_.chance(plan_.faults.worker_saves);
    liveness.saves_each = plan_.saves_each;
    const bool is_late = faults.worker_is_late > 0 && extra_dice_.chance(faults.worker_is_late);
    if (is_late) liveness.ready_in = extra_dice_.up_to(plan_.worker_ready_max);
    const double unkillable = faults.worker_outlives_kill;
    const bool is_unkillable = are_faults_on() && unkillable > 0 && stuck_dice_.chance(unkillable);
    if (is_unkillable) liveness.outlives_kill = 1ms + stuck_dice_.up_to(2 * limits::kKillTimeout);
    if (is_unkillable && stuck_dice_.chance(0.5)) liveness.outlives_kill = 1h;
    const bool regroups =
        faults.worker_regroups > 0 && regroup_dice_.chance(faults.worker_regroups);
    if (regroups) liveness.releases_in = 1ms + regroup_dice_.up_to(500ms);
    if (!are_faults_on()) return liveness;
    liveness.exit_code = prng_.chance(faults.worker_fails) ? 1 : 0;
    liveness.ignores_sigterm = prng_.chance(faults.worker_is_deaf) || is_unkillable;
    // A hanging worker hangs until the faults are over.
    Duration rest = faults_end_ - cluster_.now();
    if (prng_.chance(faults.worker_hangs)) liveness.runs = rest + prng_.up_to(1s);
    liveness.runs = std::min(liveness.runs, rest + Duration(1s));
    return liveness;
  }

  // ---------------------------------------------------------------- faults

  void plan_faults() {
    const FaultRates& f = plan_.faults;
    on_node(f.break_connection, [this](Node& n) {
      if (!n.spec().is_own) with_connection(n, &Network::break_connection);
    });
    on_node(f.black_hole, [this](Node& n) {
      if (n.spec().host != 0) with_connection(n, &Network::black_hole);
    });
    on_node(f.clog, [this](Node& n) { clog(n); });
    on_node(f.cut_off, [this](Node& n) { cut_off(n); });
    on_node(f.one_way_cut, [this](Node& n) { cut_one_way(n); });
    on_node(f.kill, [this](Node& n) { kill(n); });
    on_node(f.power, [this](Node& n) { cut_power(n); });
    on_node(f.freeze, [this](Node& n) {
      now_or_after_its_message(n, [this, &n] {
        if (!are_faults_on()) return;
        cluster_.freeze(n);
        later([this, &n] { cluster_.thaw(n); });
      });
    });
    on_node(f.pause, [this](Node& n) { pause(n); });
    on_node(f.signal, [this](Node& n) {  // twice, as Slurm does
      n.signal(kSigTerm);
      cluster_.in(kSignalAgain, [&n] { n.signal(kSigTerm); });
    });
    on_node(f.arrive, [this](Node&) { arrive_in({}); });
    on_node(f.fail_worker, [](Node& n) { n.fail_worker(0, 1); });
    on_node(f.slow_reader, [this](Node& n) {
      n.stop_reading();
      later([&n] { n.read_again(); });
    });
    on_node(f.disk_full, [this](Node& n) {
      n.fill_disk(cluster_.now() + extra_dice_.up_to(plan_.fault_lasts_max));
    });
    on_node(f.planned_fault, [this](Node& n) {
      n.request_fault_permit(extra_dice_.below(3), extra_dice_.between(1, 4));
    });
    plan_orders(f.order);
    again(f.kill_coordinator, [this] { kill_coordinator(); });
    again(f.freeze_coordinator, [this] {
      cluster_.freeze_coordinator();
      later([this] { cluster_.thaw_coordinator(); });
    });
    again(f.slow_coordinator, [this] {
      CoordinatorProcess* slow = main_coordinator();
      if (slow == nullptr) return;
      slow->stop_reading();
      later([slow] { slow->read_again(); });
    });
    again(f.cut_coordinator, [this] {
      cluster_.network().cut_off(0);
      later([this] { cluster_.network().mend_host(0); });
    });
  }

  // From a separate generator, so that runs without admin commands stay the same.
  void plan_orders(Duration mean) {
    if (mean == Duration{}) return;
    cluster_.in(order_dice_.until_event(mean), [this, mean] {
      auto& nodes = cluster_.nodes();
      if (!are_faults_on() || nodes.empty()) return;
      const auto count = static_cast<int64_t>(nodes.size());
      Node& node = *nodes[static_cast<size_t>(order_dice_.below(count))];
      if (node.is_running()) node.order(an_order());
      plan_orders(mean);
    });
  }
  control::AdminCommand an_order() {
    control::AdminCommand order;
    const int64_t max = plan_.cluster.job_spec.max_nodes;
    order.is_resumable = order_dice_.chance(0.5);
    order.nodes = order_dice_.between(1, max);
    order.node = std::to_string(order_dice_.below(max));
    const double draw = order_dice_.share();
    if (draw > 0.4) order.kind = control::AdminCommandKind::Scale;
    if (draw > 0.7) order.kind = control::AdminCommandKind::Drain;
    if (draw > 0.92) order.kind = control::AdminCommandKind::Stop;
    if (plan_.cluster.job_spec.exclude_after > 0 && exclusion_dice_.chance(0.5)) {
      const bool is_back = exclusion_dice_.chance(0.5);
      order.kind =
          is_back ? control::AdminCommandKind::Readmit : control::AdminCommandKind::Exclude;
      order.node = "n" + std::to_string(exclusion_dice_.between(1, max));
    }
    return order;
  }

  void again(Duration mean, std::function<void()> fault) {
    if (mean == Duration{}) return;
    cluster_.in(prng_.until_event(mean), [this, mean, fault] {
      if (!are_faults_on()) return;
      fault();
      again(mean, fault);
    });
  }
  void on_node(Duration mean, std::function<void(Node&)> fault) {
    again(mean, [this, fault] {
      auto& nodes = cluster_.nodes();
      if (nodes.empty()) return;
      Node& node = *nodes[static_cast<size_t>(prng_.below(static_cast<int64_t>(nodes.size())))];
      if (node.is_running()) {
        fault(node);
      } else if (prng_.chance(0.5)) {
        restart(node);
      }
    });
  }

  // Faults between a request and its answer matter most.
  void now_or_after_its_message(Node& node, std::function<void()> fault) {
    if (prng_.chance(0.5)) return fault();
    node.after_next_message(std::move(fault));
  }

  void restart(const Node& gone) {
    auto is_there = [&](const auto& n) {
      return n->is_running() && n->spec().host == gone.spec().host;
    };
    const auto& nodes = cluster_.nodes();
    if (std::any_of(nodes.begin(), nodes.end(), is_there)) return;
    if (nodes.size() < nodes_max()) cluster_.restart(gone);
  }
  void with_connection(const Node& node, void (Network::*fault)(ConnectionId)) {
    if (node.connection()) (cluster_.network().*fault)(*node.connection());
  }
  void clog(const Node& node) {
    Instant until = cluster_.now() + prng_.up_to(plan_.fault_lasts_max / 2);
    HostId host = node.spec().host;
    if (prng_.chance(0.7)) cluster_.network().clog(host, hub(), until);
    if (prng_.chance(0.7)) cluster_.network().clog(hub(), host, until);
  }
  // The host of the coordinator.
  HostId hub() {
    const Node* leader = plan_.cluster.has_etcd ? cluster_.elected() : nullptr;
    return leader == nullptr ? 0 : leader->spec().host;
  }
  // The coordinator at the endpoint, or the elected leader.
  CoordinatorProcess* main_coordinator() {
    if (!plan_.cluster.has_etcd) return cluster_.coordinator();
    Node* leader = cluster_.elected();
    return leader == nullptr ? nullptr : leader->coordinator();
  }
  void cut_off(const Node& node) {
    HostId host = node.spec().host;
    if (host == 0) return;
    cluster_.network().cut_off(host);
    later([this, host] { cluster_.network().mend_host(host); });
  }
  void cut_one_way(const Node& node) {
    HostId from = node.spec().host;
    HostId to = hub();
    if (from == to) return;
    if (prng_.chance(0.5)) std::swap(from, to);
    cluster_.network().cut(from, to);
    later([this, from, to] { cluster_.network().mend(from, to); });
  }
  void kill(Node& node) {
    if (node.spec().is_own) return;  // ends the coordinator too
    now_or_after_its_message(node, [this, &node] {
      if (!are_faults_on()) return;
      cluster_.kill(node, prng_.chance(0.2));
      if (prng_.chance(0.7)) later([this, &node] { restart(node); });
    });
  }
  void cut_power(Node& node) {
    if (node.spec().host == 0) return;  // the coordinator's
    HostId host = node.spec().host;
    cluster_.cut_power(node);
    later([this, host, &node] {
      cluster_.network().set_power(host, true);
      restart(node);
    });
  }
  void pause(Node& node) {
    HostId host = node.spec().host;
    if (host == 0 || cluster_.network().is_cut_off(host)) return;
    node.pause();
    later([this, &node] { cluster_.thaw(node); });
  }
  void kill_coordinator() {
    if (!cluster_.coordinator()->is_alive()) return;
    cluster_.kill_coordinator(prng_.chance(0.2));
    if (!plan_.faults.does_coordinator_return) return;
    const Duration most = plan_.faults.coordinator_is_away_max;
    cluster_.in(prng_.up_to(most > Duration{} ? most : plan_.fault_lasts_max),
                [this] { bring_coordinator_back(); });
  }
  void bring_coordinator_back() {
    if (!cluster_.coordinator()->is_alive()) cluster_.start_coordinator();
  }

  // ---------------------------------------------------------------- liveness

  void heal() {
    cluster_.end_all_faults();
    if (plan_.faults.does_coordinator_return) bring_coordinator_back();
  }

  // The job has everything it needs, and no node has received an outcome.
  bool must_go_on(std::map<Incarnation, Term>& here) const {
    Cluster& cluster = const_cast<Cluster&>(cluster_);
    const Job* job = cluster.job();
    // No agent may lead a job whose standby is gone (R13), except the one that led it before. By an
    // election anybody may.
    const bool has_etcd = plan_.cluster.has_etcd;
    const bool is_led =
        has_etcd || (job == nullptr ? cluster.coordinator()->is_alive()
                                    : cluster.leader()->is_alive() && !is_orphan(*job));
    bool is_undecided = job == nullptr || (!job->has_job_result() && !job->is_shutting_down());
    for (const auto& node : cluster.nodes()) {
      using How = agent::Finish::How;
      const agent::Finish* end = node->finish() ? &*node->finish() : nullptr;
      // A node that was stopped on request knows nothing of the job; otherwise the text names the
      // stopped node.
      bool is_informed = end != nullptr && (end->how == How::Success || end->how == How::Failure ||
                                            (end->how == How::Stopped && !end->text.empty()));
      is_undecided = is_undecided && !is_informed && !node->knows_outcome();
      bool is_known = has_etcd || job == nullptr || node->term() == job->term();
      using State = agent::Agent::State;
      bool is_leaving = node->state() == State::Leaving || node->state() == State::Draining ||
                        node->state() == State::Saved;
      if (node->is_running() && is_known && !is_leaving && !is_excluded(*node)) {
        here[node->id().incarnation] = node->term();
      }
    }
    // An agent that knows a later term waits for a coordinator of an even later one.
    const bool is_heeded = !plan_.cluster.clock_goes_back;
    return is_led && is_undecided && is_heeded &&
           static_cast<int64_t>(here.size()) >= plan_.cluster.job_spec.min_nodes;
  }

  bool is_excluded(const Node& node) const {
    const Job* job = const_cast<Cluster&>(cluster_).job();
    return job != nullptr && job->hosts().is_excluded(node.id().name);
  }

  static bool is_orphan(const Job& job) { return job.phase() == Job::Phase::Recovering; }

  // Reconnecting, the leases of lost nodes, last call, and stopping workers.
  Duration bound() const {
    const ClusterOptions& o = plan_.cluster;
    Duration reconnect = 7s + o.network.retransmit_max + o.network.delay_max;
    Duration one_round = o.stop_grace + limits::kKillDuration + limits::kDeathGrace;
    if (plan_.faults.worker_outlives_kill > 0) one_round += limits::kKillTimeout;
    if (o.has_etcd)
      one_round += o.job_spec.lease + 4s;  // the last leader, and the one that would have followed
    Duration delay = restart_delay(o.job_spec.restart_backoff, INT64_MAX);
    if (o.job_spec.link_check_bytes > 0) {
      delay += limits::kNodeCheckRetryInterval +
               limits::kLinkCheckPasses * (limits::kLinkCheckTimeout + limits::kLinkCheckReplyWait);
    }
    return reconnect + 2 * (o.job_spec.lease + one_round) + o.job_spec.scale_up_interval + 4s +
           delay;
  }

  void judge_liveness() {
    std::map<Incarnation, Term> here;
    cluster_.run_until(cluster_.now() + kFindingTakes + 2 * plan_.cluster.job_spec.lease);
    const bool must = must_go_on(here);
    if (must) {
      const int64_t before = cluster_.checks().rounds_formed();
      const auto is_settled = [&] { return is_going_on(before) || is_impossible(here); };
      bool has_gone_on = cluster_.run_until(is_settled, bound());
      cluster_.checks().require(has_gone_on, "L1: no round runs, and nothing is decided, within " +
                                                 std::to_string(to_seconds(bound())) + " s");
    }
    cluster_.run_until(faults_end_ + plan_.cluster.join_timeout * 2 + bound() * 2);
    for (const auto& node : cluster_.nodes()) {
      cluster_.checks().require(!node->is_running(), "L2: " + node->label() + " waits for ever");
      auto was = here.find(node->id().incarnation);
      // An agent that connects after the end starts another job, and may wait for it.
      const bool is_asked = cluster_.job() != nullptr && cluster_.job()->is_shutting_down();
      bool is_of_it =
          !is_asked && was != here.end() && was->second > Term() && was->second == node->term();
      if (!must || !node->finish() || !is_of_it || is_impossible(here)) continue;
      bool is_good = node->finish()->how != agent::Finish::How::Error;
      cluster_.checks().require(is_good,
                                "L1: " + node->label() + " gave up: " + node->finish()->text);
    }
  }

  // Nodes that have ended as unusable leave too few for a round, and possibly none that could
  // receive an outcome.
  bool lacks_usable_nodes(const std::map<Incarnation, Term>& here) const {
    int64_t usable = 0;
    for (const auto& node : const_cast<Cluster&>(cluster_).nodes()) {
      const bool is_unusable =
          node->finish() && node->finish()->how == agent::Finish::How::Unusable;
      const bool is_here = here.contains(node->id().incarnation) && !is_excluded(*node);
      usable += is_here && !is_unusable ? 1 : 0;
    }
    return usable < plan_.cluster.job_spec.min_nodes;
  }

  // Since the faults ended, nodes have left that the job cannot run without.
  bool is_impossible(const std::map<Incarnation, Term>& here) const {
    return lacks_usable_nodes(here) || lacks_leader();
  }

  // The coordinator's host was asked to stop, and no standby is left: the nodes wait until a
  // launcher hosts a coordinator at the endpoint.
  bool lacks_leader() const {
    Cluster& cluster = const_cast<Cluster&>(cluster_);
    if (cluster.coordinator() == nullptr) return false;  // any agent may lead, by an election
    const Node* host = cluster.embedded_node();
    const CoordinatorProcess* leader = cluster.leader();
    const bool is_alive =
        cluster.coordinator()->is_alive() || (leader != nullptr && leader->is_alive());
    const bool was_stopped = host != nullptr && host->finish() && host->finish()->signal != 0;
    return was_stopped && !is_alive && !has_standby();
  }

  // A running node that the newest round names as its standby.
  bool has_standby() const {
    const control::RankAssignment* newest = nullptr;
    for (const auto& node : const_cast<Cluster&>(cluster_).nodes()) {
      const auto& own = node->assignment();
      if (!node->is_running() || !own) continue;
      const auto place = [](const auto& a) { return std::pair(a.term, a.round); };
      if (newest == nullptr || place(*newest) < place(*own)) newest = &*own;
    }
    if (newest == nullptr || !newest->standby) return false;
    const auto is_it = [&](const auto& node) {
      return node->is_running() && node->id().incarnation == newest->standby->node;
    };
    return std::ranges::any_of(const_cast<Cluster&>(cluster_).nodes(), is_it);
  }

  bool is_going_on(int64_t rounds_before) {
    const Job* job = cluster_.job();
    if (job == nullptr) return cluster_.checks().rounds_formed() > rounds_before;
    if (job->has_job_result() || job->is_shutting_down()) return true;  // the order was on its way
    if (job->phase() != Job::Phase::Running) return false;
    for (const auto& [incarnation, node] : job->nodes()) {
      if (node.worker_phase == cpprun::Node::WorkerPhase::Running ||
          node.worker_phase == cpprun::Node::WorkerPhase::Done) {
        return true;
      }
    }
    return false;
  }

  SwarmResult result() {
    SwarmResult made{cluster_.checks().broken(), cluster_.hash(), cluster_.checks().rounds_formed(),
                     cluster_.event_queue().steps(), 0};
    for (const auto& node : cluster_.nodes()) {
      bool is_success = node->finish() && node->finish()->how == agent::Finish::How::Success;
      made.successes += is_success ? 1 : 0;
    }
    return made;
  }

  const SwarmPlan plan_;
  Cluster cluster_;
  Prng prng_;
  Prng snapshot_dice_ = prng_.child(3);
  Prng order_dice_ = prng_.child(4);
  Prng extra_dice_ = prng_.child(5);
  Prng stuck_dice_ = prng_.child(8);
  Prng exclusion_dice_ = prng_.child(9);
  Prng regroup_dice_ = prng_.child(10);
  Prng link_dice_ = prng_.child(11);
  const Prng bad_links_ = prng_.child(12);
  Instant faults_end_;
};

}  // namespace

SwarmResult run_swarm(const SwarmPlan& plan, const std::function<void(const std::string&)>& sink) {
  return SwarmRun(plan).run(sink);
}

}  // namespace cpprun::sim
