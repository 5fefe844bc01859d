#include "tests/support/sim/cluster.hpp"

#include <algorithm>
#include <tuple>

#include "common/limits/rendezvous.hpp"
#include "tests/support/sim/node_keys.hpp"

namespace cpprun::sim {

using namespace std::chrono_literals;

namespace {
// Coordinators of one endpoint take their terms from the wall clock, so terms lie far apart.
constexpr int64_t kTermStep =
    10'000;  // terms between two coordinators, for standbys and clocks that went back
}  // namespace

control::JobSpec ClusterOptions::default_job_spec() {
  control::JobSpec job_spec;
  job_spec.min_nodes = job_spec.max_nodes = 2;
  job_spec.max_restarts = 3;
  job_spec.scale_up_interval = limits::kScaleUpInterval;
  job_spec.heartbeat = limits::kHeartbeat;
  job_spec.lease = limits::kNodeLease;
  return job_spec;
}

Cluster::Cluster(ClusterOptions options)
    : options_(std::move(options)),
      prng_(options_.seed),
      network_(event_queue_, trace_, prng_.child(2), options_.network),
      context_{event_queue_, network_, trace_,  checks_,       prng_, 0,
               nullptr,      nullptr,  nullptr, prng_.child(3)} {
  if (options_.has_etcd) {
    etcd_ = std::make_unique<Etcd>(event_queue_, network_, trace_, checks_, prng_.child(4),
                                   clock_of(kEtcdHost), options_.etcd);
    context_.etcd = etcd_.get();
  }
  context_.plan = [this](const Node&, const control::RankAssignment&) {
    WorkerBehavior liveness;
    liveness.is_hanging = true;
    return SpawnPlan{false,
                     std::vector<WorkerBehavior>(static_cast<size_t>(options_.nproc), liveness)};
  };
}

HostClock Cluster::clock_of(HostId host) const {
  Prng prng = prng_.child(static_cast<uint64_t>(host) + 500'000);
  HostClock clock;
  clock.drift_ppm = prng.between(-options_.drift_ppm_max, options_.drift_ppm_max);
  clock.offset = prng.up_to(1000s);
  return clock;
}

void Cluster::start_coordinator() {
  if (coordinator_) former_coordinators_.push_back(std::move(coordinator_));
  terms_ += kTermStep;
  const bool is_set_back = options_.clock_goes_back && terms_ == 2 * kTermStep;
  CoordinatorSpec spec;
  spec.host = context_.coordinator_host;
  spec.clock = clock_of(spec.host);
  spec.options.host = "head";
  spec.options.term = Term(is_set_back ? terms_ / 10 : terms_);  // no other node has that address
  spec.options.wait_reminder_interval = options_.wait_reminder_interval;
  spec.options.make_secret = [this] { return "secret " + std::to_string(++secrets_); };
  spec.options.node_id_of = id_of_key;
  if (options_.is_first_embedded && terms_ == kTermStep) spec.options.embedded = Incarnation(1);
  coordinator_ = std::make_unique<CoordinatorProcess>(context_, std::move(spec));
}

agent::AgentOptions Cluster::agent_options(const NodeId& id) const {
  agent::AgentOptions made;
  made.hello.version = "sim";
  made.hello.run_id = options_.run_id;
  made.hello.node = id;
  made.hello.token = key_of(id.incarnation);
  made.facts.nproc = options_.nproc;
  made.facts.role = "default";
  made.facts.has_snapshot_dir = options_.has_snapshots;
  made.facts.job_spec = options_.job_spec;
  made.join_timeout = options_.join_timeout;
  made.stop_grace = options_.stop_grace;
  made.keeps_survivors = true;  // of workers that can regroup
  made.is_led_by_election = options_.has_etcd;
  made.has_node_check = options_.has_node_check;
  return made;
}

Node& Cluster::add_node(NewNode wanted) {
  NodeSpec spec;
  auto number = nodes_.size() + 1;
  std::string name = wanted.name.empty() ? "n" + std::to_string(number) : wanted.name;
  spec.agent = agent_options(NodeId{name, Incarnation(number)});
  const bool has_links = options_.job_spec.link_check_bytes > 0;
  spec.agent.facts.link_port = has_links ? static_cast<int64_t>(number) : 0;
  if (wanted.change) wanted.change(spec.agent);
  spec.is_own = options_.is_first_embedded && number == 1 && !options_.has_etcd;
  spec.has_control_port = options_.has_control_ports || options_.has_etcd;
  spec.host = spec.is_own ? context_.coordinator_host : ++hosts_;
  return add(std::move(spec));
}

Node& Cluster::restart(const Node& gone) {
  NodeSpec spec = gone.spec();
  spec.agent.hello.node.incarnation = Incarnation(nodes_.size() + 1);
  spec.agent.hello.token = key_of(spec.agent.hello.node.incarnation);
  spec.is_own = false;
  return add(std::move(spec));
}

Node& Cluster::add(NodeSpec spec) {
  const std::string& name = spec.agent.hello.node.name;
  int nth = ++same_names_[name];
  spec.label = nth == 1 ? name : name + "'" + (nth == 2 ? "" : std::to_string(nth - 1));
  spec.clock = clock_of(spec.host);
  trace_.line(now(), spec.label, "starts");
  nodes_.push_back(std::make_unique<Node>(context_, std::move(spec)));
  if (nodes_.back()->spec().is_own) nodes_.back()->set_coordinator(coordinator_.get());
  nodes_.back()->start();
  return *nodes_.back();
}

std::vector<CoordinatorProcess*> Cluster::coordinators() const {
  std::vector<CoordinatorProcess*> all;
  if (coordinator_) all.push_back(coordinator_.get());
  for (const auto& node : nodes_) {
    CoordinatorProcess* lead = node->spec().is_own ? nullptr : node->coordinator();
    if (lead != nullptr && lead->is_awake()) all.push_back(lead);
  }
  return all;
}

// Of the process that leads the job; else of one that may lead it, or has led it.
const Job* Cluster::job() const {
  const CoordinatorProcess* process = leader();
  return process == nullptr ? nullptr : process->job(options_.run_id);
}

const CoordinatorProcess* Cluster::leader() const {
  const Job* best = nullptr;
  auto rank = [](const CoordinatorProcess* process, const Job* job) {
    return std::tuple(process->is_alive() && !has_no_memory(*job), process->is_alive(),
                      job->term());
  };
  const CoordinatorProcess* of = nullptr;
  for (const CoordinatorProcess* process : coordinators()) {
    const Job* job = process->job(options_.run_id);
    if (job == nullptr || (best != nullptr && rank(process, job) < rank(of, best))) continue;
    best = job;
    of = process;
  }
  return of;
}

void Cluster::kill(Node& node, bool is_reset) {
  if (!node.is_running()) return;
  node.kill(is_reset);
}

void Cluster::freeze(Node& node) { node.freeze(); }

void Cluster::thaw(Node& node) { node.thaw(); }

// The agent in the coordinator's process, if there is one.
Node* Cluster::embedded_node() {
  const bool has_one = coordinator_->spec().options.embedded && !nodes_.empty();
  return has_one ? nodes_.front().get() : nullptr;
}

void Cluster::kill_coordinator(bool is_reset) {
  if (Node* node = embedded_node()) node->kill(is_reset);
  coordinator_->kill(is_reset);
}

void Cluster::freeze_coordinator() {
  if (Node* node = embedded_node()) node->freeze();
  coordinator_->freeze();
}

void Cluster::thaw_coordinator() {
  coordinator_->thaw();
  if (Node* node = embedded_node()) node->thaw();
}

void Cluster::cut_power(Node& node) {
  if (!node.is_running() || node.spec().is_own) return;
  const HostId host = node.spec().host;
  for (auto& other : nodes_) {
    if (other->spec().host == host) other->lose_power();
  }
  network_.set_power(host, false);
}

void Cluster::impersonate(const Node& node, ImpostorKind kind) {
  const CoordinatorProcess* led = leader();
  const bool is_led = led != nullptr && led->is_alive();
  control::Hello hello = node.spec().agent.hello;
  std::vector<control::AgentMessage> messages{node.spec().agent.facts};
  if (kind == ImpostorKind::WithoutKey) {
    hello.token.clear();
    hello.connection = int64_t{1} << 62;
  } else if (kind != ImpostorKind::Duplicate && is_led) {
    messages = led->recorded(node.id().incarnation);
    const auto* first = messages.empty() ? nullptr : std::get_if<control::Hello>(&messages.front());
    if (first == nullptr) return;
    hello = *first;
    messages.erase(messages.begin());
    if (kind == ImpostorKind::Unregistered) {
      std::erase_if(messages, [](const control::AgentMessage& each) {
        return std::holds_alternative<control::Register>(each);
      });
    }
  }
  hello.node.name = kImpostorName;
  impostors_.push_back(std::make_unique<Impostor>(
      context_, is_led ? led->spec().host : context_.coordinator_host,
      is_led ? led->spec().port : kJobPort, std::move(hello), std::move(messages)));
}

void Cluster::end_all_faults() {
  network_.mend_all();
  for (auto& node : nodes_) {
    thaw(*node);
    node->read_again();
    if (CoordinatorProcess* lead = node->coordinator()) lead->read_again();
  }
  if (coordinator_) {
    thaw_coordinator();
    coordinator_->read_again();
  }
  if (!etcd_) return;
  etcd_->set_troubles(0, 0);
  etcd_->start();
}

Node* Cluster::elected() {
  Node* found = nullptr;
  for (auto& node : nodes_) {
    if (!node->is_alive() || !node->believes_it_leads()) continue;
    const bool is_newer = found == nullptr || node->coordinator()->spec().options.term >
                                                  found->coordinator()->spec().options.term;
    if (is_newer) found = node.get();
  }
  return found;
}

bool Cluster::run_until(const std::function<bool()>& holds, Duration most) {
  Instant end = now() + most;
  while (!holds()) {
    if (!event_queue_.step(end)) return holds();
  }
  return true;
}

}  // namespace cpprun::sim
