// Cluster: hosts, a coordinator and the agents of a job, in virtual time. The same seed and the
// same calls give the same run, event for event.
//
// With `has_etcd` the job's arbiter is etcd (R18), and no coordinator listens at the endpoint.
// Otherwise host 0 is the coordinator's. Each node has its own host; with `is_first_embedded` the
// first node lives in the coordinator's process.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "common/limits/agent.hpp"
#include "common/limits/rendezvous.hpp"
#include "tests/support/sim/coordinator_process.hpp"
#include "tests/support/sim/impostor.hpp"
#include "tests/support/sim/node.hpp"

namespace cpprun::sim {

struct ClusterOptions {
  uint64_t seed = 0;
  std::string run_id = "job";
  control::JobSpec job_spec = default_job_spec();
  Duration join_timeout = limits::kJoinTimeout;
  Duration stop_grace = limits::kStopGrace;
  Duration wait_reminder_interval = limits::kWaitReminderInterval;
  int64_t nproc = 1;
  bool is_first_embedded = false;
  bool has_node_check = false;    // --node-check on every node
  bool has_control_ports = true;  // required for standbys
  bool has_etcd = false;          // --rdzv-backend=etcd
  EtcdOptions etcd;
  bool has_snapshots = false;      // --snapshot-dir on every node, each with its own folder
  int64_t drift_ppm_max = 20'000;  // the protocol's 2 %
  // The wall clock of the endpoint's host is set back before the second coordinator there.
  bool clock_goes_back = false;
  NetworkOptions network;

  static control::JobSpec default_job_spec();
};

class Cluster {
 public:
  explicit Cluster(ClusterOptions options);

  // The behaviour of a node's workers in a round; nullptr: run forever.
  using Plan = std::function<SpawnPlan(const Node&, const control::RankAssignment&)>;
  void set_plan(Plan plan) { context_.plan = std::move(plan); }
  void set_link_plan(std::function<LinkPlan(const Node&, int64_t peer_port)> plan) {
    context_.plan_link = std::move(plan);
  }
  void set_fetch_plan(std::function<FetchPlan()> plan) { context_.plan_fetch = std::move(plan); }
  void when_workers_change(std::function<void()> then) {
    context_.on_workers_changed = std::move(then);
  }

  // ---- programs
  // A coordinator at the job's endpoint, with a greater term than all before it.
  void start_coordinator();
  struct NewNode {
    std::string name;                                  // empty: "n<number>"
    std::function<void(agent::AgentOptions&)> change;  // changes the default options
  };
  Node& add_node(NewNode wanted);
  Node& add_node() { return add_node({}); }
  // Another agent on the same host with the same name, as a user would start it.
  Node& restart(const Node& gone);

  // ---- faults of more than one program
  void kill(Node& node, bool is_reset = false);
  void freeze(Node& node);
  void thaw(Node& node);
  void kill_coordinator(bool is_reset = false);
  void freeze_coordinator();
  void thaw_coordinator();
  void cut_power(Node& node);
  // A peer claims this node's id, at the job's leader or at the job's endpoint.
  void impersonate(const Node& node, ImpostorKind kind = ImpostorKind::WithoutKey);
  void end_all_faults();  // cuts, freezes, power; dead processes stay dead

  // ---- the arbiter
  Etcd& etcd() { return *etcd_; }
  // The live node that leads by the election, or nullptr.
  Node* elected();

  // ---- time
  bool step(Instant end) { return event_queue_.step(end); }
  void run_until(Instant end) {
    while (event_queue_.step(end)) {
    }
  }
  void run_for(Duration duration) { run_until(event_queue_.now() + duration); }
  // False: the condition did not hold within this time.
  bool run_until(const std::function<bool()>& holds, Duration most);
  Instant now() const { return event_queue_.now(); }
  void in(Duration delay, EventQueue::Event event) { event_queue_.in(delay, std::move(event)); }

  // ---- observation
  Network& network() { return network_; }
  Trace& trace() { return trace_; }
  Checks& checks() { return checks_; }
  const ClusterOptions& options() const { return options_; }
  const EventQueue& event_queue() const { return event_queue_; }
  CoordinatorProcess* coordinator() { return coordinator_.get(); }
  const Job* job() const;
  const CoordinatorProcess* leader() const;  // of job()
  // At the job's endpoint, and in agents that became coordinator; dead ones too.
  std::vector<CoordinatorProcess*> coordinators() const;
  std::vector<std::unique_ptr<Node>>& nodes() { return nodes_; }
  Node* embedded_node();  // the one in the process of coordinator()
  HostClock clock_of(HostId host) const;
  // Hash of the whole run.
  uint64_t hash() const { return trace_.hash() ^ event_queue_.steps(); }

 private:
  agent::AgentOptions agent_options(const NodeId& id) const;
  Node& add(NodeSpec spec);

  const ClusterOptions options_;
  EventQueue event_queue_;
  Trace trace_;
  Checks checks_;
  Prng prng_;
  int64_t secrets_ = 0;
  Network network_;
  std::unique_ptr<Etcd> etcd_;
  SimContext context_;
  std::unique_ptr<CoordinatorProcess> coordinator_;
  std::vector<std::unique_ptr<CoordinatorProcess>> former_coordinators_;
  std::vector<std::unique_ptr<Node>> nodes_;
  std::vector<std::unique_ptr<Impostor>> impostors_;
  std::map<std::string, int> same_names_;
  int64_t terms_ = 0;
  HostId hosts_ = 0;
};

}  // namespace cpprun::sim
