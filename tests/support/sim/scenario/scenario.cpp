#include "tests/support/sim/scenario/scenario.hpp"

#include <algorithm>
#include <memory>
#include <sstream>
#include <utility>

#include "common/text.hpp"
#include "tests/support/sim/scenario/scenario_conditions.hpp"
#include "tests/support/sim/scenario/scenario_parser.hpp"

namespace cpprun::sim {

using namespace std::chrono_literals;

namespace {

class Player {
 public:
  // False: no such command.
  bool play(const Words& words);

  Words take_lines() { return std::exchange(lines_, {}); }
  // The properties that must hold in every run.
  void judge() {
    if (!cluster_) return;
    for (const std::string& what : cluster_->checks().broken()) failures.push_back(what);
  }
  std::vector<std::string> failures;

 private:
  struct Command {
    const char* pattern;
    bool (Player::*act)(const Words&);
  };
  static const std::vector<Command>& commands();

  // ---- nodes
  bool job(const Words& words);
  bool nodes(const Words& words);
  bool node_with(const Words& words);
  bool restart(const Words& words);
  bool start_coordinator(const Words&);
  // ---- workers
  bool worker_ends(const Words& words);
  bool worker_hangs(const Words& words);
  bool workers_end_well(const Words& words);
  bool all_end_well(const Words&);
  bool stubborn(const Words& words);
  bool regroups(const Words& words);
  bool spawn_fails(const Words& words);
  bool spawn_works(const Words& words);
  bool check(const Words& words);
  // ---- faults
  bool node_fault(const Words& words);
  bool kill_with_reset(const Words& words);
  bool signal(const Words& words);
  bool order(const Words& words);
  bool cut(const Words& words);
  bool isolate(const Words& words);
  bool mend(const Words& words);
  bool coordinator_fault(const Words& words);
  bool no_ports(const Words&);
  bool etcd_fault(const Words& words);
  // ---- time and expectations
  bool passes(const Words& words);
  bool until(const Words& words);
  bool expect(const Words& words);

  Node* find(const std::string& name) { return find_node(*cluster_, name); }
  // Of "b.1"; "b" is its first one. No node: there is no such worker.
  std::pair<Node*, size_t> find_worker(const std::string& name);
  HostId host_of(const std::string& name);
  SpawnPlan plan(const Node& node) const;
  void fail(const std::string& what);

  std::unique_ptr<Cluster> cluster_;
  std::map<std::string, WorkerBehavior> lives_;  // by node name; "" for all others
  std::set<std::string> without_program_;
  Words lines_;
};

const std::vector<Player::Command>& Player::commands() {
  static const std::vector<Command> all{
      {"job ...", &Player::job},
      {"nodes ...", &Player::nodes},
      {"node NAME ...", &Player::node_with},
      {"node NAME", &Player::nodes},
      {"restart NODE", &Player::restart},
      {"coordinator starts", &Player::start_coordinator},
      {"worker NODE ends with CODE", &Player::worker_ends},
      {"worker NODE hangs", &Player::worker_hangs},
      {"workers of NODE end well", &Player::workers_end_well},
      {"all workers end well", &Player::all_end_well},
      {"workers of NODE need TIME to stop", &Player::stubborn},
      {"workers of NODE outlive SIGKILL by TIME", &Player::stubborn},
      {"workers of NODE regroup within TIME", &Player::regroups},
      {"program is missing on NODE", &Player::spawn_fails},
      {"program is there on NODE", &Player::spawn_works},
      {"check fails on NODE", &Player::check},
      {"check passes on NODE", &Player::check},
      {"kill coordinator", &Player::coordinator_fault},
      {"freeze coordinator", &Player::coordinator_fault},
      {"thaw coordinator", &Player::coordinator_fault},
      {"coordinator has no ports", &Player::no_ports},
      {"etcd stops", &Player::etcd_fault},
      {"etcd starts", &Player::etcd_fault},
      {"kill NODE with reset", &Player::kill_with_reset},
      {"kill NODE", &Player::node_fault},
      {"freeze NODE", &Player::node_fault},
      {"pause NODE", &Player::node_fault},
      {"thaw NODE", &Player::node_fault},
      {"poweroff NODE", &Player::node_fault},
      {"poweron NODE", &Player::node_fault},
      {"break NODE", &Player::node_fault},
      {"blackhole NODE", &Player::node_fault},
      {"impersonate NODE", &Player::node_fault},
      {"isolate NODE", &Player::isolate},
      {"mend NODE", &Player::mend},
      {"cut FROM to TO", &Player::cut},
      {"mend FROM to TO", &Player::cut},
      {"signal NODE NUMBER", &Player::signal},
      {"admin NODE ...", &Player::order},
      {"passes TIME", &Player::passes},
      {"until ...", &Player::until},
      {"expect ...", &Player::expect},
  };
  return all;
}

bool Player::play(const Words& words) {
  if (!cluster_ && words.front() != "job") return false;
  for (const Command& command : commands()) {
    if (!match(command.pattern, words)) continue;
    return (this->*command.act)(words);
  }
  return false;
}

// ---------------------------------------------------------------- nodes

bool Player::job(const Words& words) {
  ClusterOptions options;
  options.seed = 1;
  options.drift_ppm_max = 0;
  options.network.latency_max = 1ms;
  options.network.split = 0;
  for (size_t i = 1; i < words.size(); ++i) {
    if (!apply_setting(words[i], options)) return false;
  }
  cluster_ = std::make_unique<Cluster>(options);
  cluster_->trace().listen(Trace::Detail::Summary,
                           [this](const std::string& line) { lines_.push_back(line); });
  cluster_->set_plan(
      [this](const Node& node, const control::RankAssignment&) { return plan(node); });
  if (!options.has_etcd) cluster_->start_coordinator();
  return true;
}

SpawnPlan Player::plan(const Node& node) const {
  const std::string& name = node.id().name;
  auto own = lives_.find(name);
  WorkerBehavior liveness = own == lives_.end() ? WorkerBehavior{} : own->second;
  liveness.is_hanging = true;  // until the script ends them
  auto nproc = static_cast<size_t>(node.spec().agent.facts.nproc);
  return SpawnPlan{without_program_.contains(name), std::vector<WorkerBehavior>(nproc, liveness)};
}

bool Player::nodes(const Words& words) {
  for (size_t i = 1; i < words.size(); ++i) cluster_->add_node({words[i], nullptr});
  cluster_->run_for(Duration{});
  return true;
}

// `node c nnodes=2 rank=1 nproc=4 run-id=other`: an agent with different options.
bool Player::node_with(const Words& words) {
  ClusterOptions changed = cluster_->options();
  std::optional<int64_t> rank;
  std::string run_id = changed.run_id;
  for (size_t i = 2; i < words.size(); ++i) {
    if (words[i].starts_with("rank=")) {
      rank = text::parse_int(words[i].substr(5));
    } else if (words[i].starts_with("run-id=")) {
      run_id = words[i].substr(7);
    } else if (!apply_setting(words[i], changed)) {
      return false;
    }
  }
  cluster_->add_node({words[1], [&](agent::AgentOptions& options) {
                        options.hello.run_id = run_id;
                        options.facts.job_spec = changed.job_spec;
                        options.facts.nproc = changed.nproc;
                        options.facts.node_rank = rank;
                      }});
  return true;
}

bool Player::restart(const Words& words) {
  Node* node = find(words[1]);
  if (node == nullptr) return false;
  cluster_->restart(*node);
  return true;
}

bool Player::start_coordinator(const Words&) {
  cluster_->start_coordinator();
  return true;
}

HostId Player::host_of(const std::string& name) {
  if (name == "head") return 0;
  if (name == "etcd") return kEtcdHost;
  Node* node = find(name);
  return node == nullptr ? -1 : node->spec().host;
}

// ---------------------------------------------------------------- workers

std::pair<Node*, size_t> Player::find_worker(const std::string& name) {
  const Words parts = text::split(name, '.');
  const auto local = parts.size() == 2 ? text::parse_int(parts[1]) : int64_t{0};
  return {local ? find(parts[0]) : nullptr, static_cast<size_t>(local.value_or(0))};
}

// `worker b ends with 1`, `worker b.2 ends with -9`.
bool Player::worker_ends(const Words& words) {
  const auto [node, local] = find_worker(words[1]);
  std::optional<int64_t> code = text::parse_int(words[4]);
  if (node == nullptr || !code) return false;
  node->fail_worker(local, static_cast<int>(*code));
  cluster_->run_for(Duration{});
  return true;
}

bool Player::worker_hangs(const Words& words) {
  const auto [node, local] = find_worker(words[1]);
  if (node == nullptr) return false;
  node->hang_worker(local);
  cluster_->run_for(Duration{});
  return true;
}

bool Player::check(const Words& words) {
  Node* node = find(words[3]);
  if (node == nullptr) return false;
  node->set_check_result(words[1] == "fails" ? "GPU 3 has fallen off the bus" : "");
  return true;
}

bool Player::workers_end_well(const Words& words) {
  Node* node = find(words[2]);
  if (node == nullptr) return false;
  for (int64_t i = 0; i < node->spec().agent.facts.nproc; ++i) {
    node->fail_worker(static_cast<size_t>(i), 0);
  }
  cluster_->run_for(Duration{});
  return true;
}

bool Player::all_end_well(const Words&) {
  for (auto& node : cluster_->nodes()) {
    for (int64_t i = 0; i < node->spec().agent.facts.nproc; ++i) {
      node->fail_worker(static_cast<size_t>(i), 0);
    }
  }
  cluster_->run_for(Duration{});
  return true;
}

// From their next start on.
bool Player::stubborn(const Words& words) {
  const bool outlives = words[3] == "outlive";
  std::optional<Duration> time = parse_duration(words[outlives ? 6 : 4]);
  if (!time) return false;
  WorkerBehavior& liveness = lives_[words[2]];
  liveness.ignores_sigterm = liveness.ignores_sigterm || outlives;
  (outlives ? liveness.outlives_kill : liveness.stops_in) = *time;
  return true;
}

bool Player::regroups(const Words& words) {
  const std::optional<Duration> time = parse_duration(words[5]);
  if (!time) return false;
  lives_[words[2]].releases_in = *time;
  return true;
}

bool Player::spawn_fails(const Words& words) { return without_program_.insert(words[4]).second; }
bool Player::spawn_works(const Words& words) { return without_program_.erase(words[4]) > 0; }

// ---------------------------------------------------------------- faults

bool Player::node_fault(const Words& words) {
  Node* node = find(words[1]);
  if (node == nullptr) return false;
  const std::string& what = words[0];
  Network& network = cluster_->network();
  if (what == "kill") cluster_->kill(*node);
  if (what == "freeze") cluster_->freeze(*node);
  if (what == "pause") node->pause();
  if (what == "impersonate") cluster_->impersonate(*node);
  if (what == "thaw") cluster_->thaw(*node);
  if (what == "poweroff") cluster_->cut_power(*node);
  if (what == "poweron") network.set_power(node->spec().host, true);
  if (what == "break" && node->connection()) network.break_connection(*node->connection());
  if (what == "blackhole" && node->connection()) network.black_hole(*node->connection());
  cluster_->run_for(Duration{});
  return true;
}

bool Player::kill_with_reset(const Words& words) {
  Node* node = find(words[1]);
  if (node != nullptr) cluster_->kill(*node, true);
  return node != nullptr;
}

bool Player::isolate(const Words& words) {
  HostId host = host_of(words[1]);
  cluster_->network().cut_off(host);
  return host >= 0;
}

bool Player::mend(const Words& words) {
  HostId host = host_of(words[1]);
  cluster_->network().mend_host(host);
  return host >= 0;
}

bool Player::cut(const Words& words) {
  HostId from = host_of(words[1]);
  HostId to = host_of(words[3]);
  if (from < 0 || to < 0) return false;
  if (words[0] == "cut") {
    cluster_->network().cut(from, to);
  } else {
    cluster_->network().mend(from, to);
  }
  return true;
}

bool Player::signal(const Words& words) {
  Node* node = find(words[1]);
  std::optional<int64_t> number = text::parse_int(words[2]);
  if (node == nullptr || !number) return false;
  node->signal(static_cast<int>(*number));
  return true;
}

bool Player::order(const Words& words) {
  Node* node = find(words[1]);
  const std::optional<control::AdminCommand> order =
      parse_admin_command(Words(words.begin() + 2, words.end()));
  if (node == nullptr || !order) return false;
  node->order(*order);
  return true;
}

bool Player::coordinator_fault(const Words& words) {
  if (words[0] == "kill") cluster_->kill_coordinator();
  if (words[0] == "freeze") cluster_->freeze_coordinator();
  if (words[0] == "thaw") cluster_->thaw_coordinator();
  return true;
}

bool Player::etcd_fault(const Words& words) {
  if (!cluster_->options().has_etcd) return false;
  words[1] == "stops" ? cluster_->etcd().stop() : cluster_->etcd().start();
  return true;
}

bool Player::no_ports(const Words&) {
  cluster_->coordinator()->set_port_fails(1);
  return true;
}

// ---------------------------------------------------------------- time and expectations

bool Player::passes(const Words& words) {
  std::optional<Duration> time = parse_duration(words[1]);
  if (time) cluster_->run_for(*time);
  return time.has_value();
}

// `until CONDITION within TIME`.
bool Player::until(const Words& words) {
  if (words.size() < 4 || words[words.size() - 2] != "within") return false;
  std::optional<Duration> most = parse_duration(words.back());
  if (!most) return false;
  Words condition(words.begin() + 1, words.end() - 2);
  if (!holds(*cluster_, condition)) return false;
  bool is_met = cluster_->run_until([&] { return *holds(*cluster_, condition); }, *most);
  if (!is_met) fail(text::join(words, " "));
  return true;
}

bool Player::expect(const Words& words) {
  Words condition(words.begin() + 1, words.end());
  std::optional<bool> is_so = holds(*cluster_, condition);
  if (is_so == false) fail(text::join(words, " "));
  return is_so.has_value();
}

void Player::fail(const std::string& what) {
  failures.push_back(what);
  lines_.push_back("         FAILED: " + what);
}

}  // namespace

Result<ScenarioRun> run_scenario(const std::string& script) {
  Player player;
  ScenarioRun made;
  std::istringstream input(script);
  std::string line;
  int number = 0;
  while (std::getline(input, line)) {
    ++number;
    if (line.starts_with(' ')) continue;  // the transcript of an earlier run
    made.text += line + "\n";
    if (line.empty() || line.starts_with('#')) continue;
    Words words;
    for (std::string& word : text::split(line, ' ')) {
      if (!word.empty()) words.push_back(std::move(word));
    }
    if (!player.play(words)) {
      return Error{ErrorKind::Usage, "line " + std::to_string(number) + " is no command: " + line};
    }
    for (const std::string& entry : player.take_lines()) made.text += " " + entry + "\n";
  }
  player.judge();
  made.failures = player.failures;
  return made;
}

}  // namespace cpprun::sim
