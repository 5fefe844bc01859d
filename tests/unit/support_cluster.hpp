// Cluster: one coordinator and some agents, their cores joined by an in-memory network in virtual
// time; every message is encoded and decoded. Workers are marks with a time. Same seed, same run.
#pragma once

#include <algorithm>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <utility>
#include <variant>
#include <vector>

#include "rendezvous/core/coordinator.hpp"
#include "tests/unit/support_checks.hpp"
#include "tests/unit/support_cluster_parts.hpp"
#include "tests/unit/support_wire.hpp"

namespace cpprun::test::cluster {

using namespace std::chrono_literals;

class Cluster : public Dice {
 public:
  explicit Cluster(ClusterOptions given) : Dice{std::mt19937_64(given.seed)}, options(given) {
    CoordinatorOptions made{"head", Epoch(1), std::nullopt};
    if (options.is_first_embedded) made.embedded = Incarnation(1);
    core = std::make_unique<Coordinator>(made);
  }

  // ---- faults and arrivals
  void add_node() {
    nodes.push_back(std::make_unique<Node>());
    Node& node = *nodes.back();
    node.id = NodeId{"n" + std::to_string(nodes.size() % 7), Incarnation(nodes.size())};
    node.rate = 0.99 + 0.02 * chance();
    node.core = std::make_unique<agent::Agent>(agent_options(options, node));
    tell(node, [](Node& n, Instant t, agent::Effects& e) { n.core->start(t, e); });
    connect_in(node, random_time(20ms));
  }
  void break_connection(Node& node) {
    trace(node, "its connection breaks");
    if (node.session) drop(links.at(*node.session), Instant(now + random_time(20ms)));
  }
  void kill(Node& node) {
    trace(node, "is killed");
    node.is_alive = false;
    for (Worker& worker : node.workers) {
      end_at(worker, now + random_time(limits::kDeathGrace - 1ms));
    }
    arm_ends(node);
    if (node.session) hang_up(node, chance() < 0.2);
  }
  void freeze(Node& node) {
    trace(node, "freezes");
    node.is_frozen = true;
  }
  void thaw(Node& node) {
    if (!node.is_frozen) return;
    node.is_frozen = false;
    trace(node, "thaws");
    on_timer(node);  // R11: first its deadline
    while (!node.backlog.empty() && !node.is_frozen) {
      std::function<void()> next = std::move(node.backlog.front());
      node.backlog.pop_front();
      next();
    }
  }
  void cut(Node& node) {
    trace(node, "is cut off");
    node.is_cut = true;
  }
  void heal(Node& node) {
    node.is_cut = false;
    trace(node, "is healed");
    if (!node.session) return;
    Link& link = links.at(*node.session);
    for (int n = std::exchange(link.owed_up, 0); n > 0; --n) pump_up(link.id, now);
    for (int n = std::exchange(link.owed_down, 0); n > 0; --n) pump_down(link.id, now);
  }
  void signal(Node& node) {
    tell(node, [](Node& n, Instant t, agent::Effects& e) { n.core->on_signal(t, 15, e); });
  }

  // ---- time
  bool step(Instant end) {
    Instant next = events.empty() ? Instant::never() : events.begin()->first;
    next = std::min(next, core->next_deadline());
    for (auto& node : nodes) next = std::min({next, timer_of(*node), guardian_of(*node)});
    if (next > end) {
      now = end;
      return false;
    }
    now = std::max(now, next);
    if (!events.empty() && events.begin()->first <= now) {
      std::function<void()> event = std::move(events.begin()->second);
      events.erase(events.begin());
      event();
      return true;
    }
    on_timers();
    return true;
  }
  void at(Instant time, std::function<void()> event) { events.emplace(time, std::move(event)); }

  Node* some_node() { return nodes[random() % nodes.size()].get(); }

  const ClusterOptions options;
  Instant now = Instant::from_nanoseconds(1'000'000'000);
  bool has_faults = true;
  std::unique_ptr<Coordinator> core;
  std::vector<std::unique_ptr<Node>> nodes;
  Checks checks;
  int64_t rounds_started = 0;
  bool is_traced = false;  // one line on stderr for everything that happens

 private:
  void trace(const Node& node, const std::string& what) const {
    if (is_traced) print_event(now, node, what);
  }
  template <class Message>
  void trace(const Node& node, const char* arrow, const Message& message) const {
    if (is_traced) print_message(now, node, arrow, message);
  }

  // ---- the network
  void connect_in(Node& node, Duration delay) {
    at(now + delay, [this, &node] {
      if (!node.is_alive || node.is_closing || node.session) return;
      if (node.is_cut || node.is_frozen) return connect_in(node, 100ms);
      SessionId id(++sessions);
      links[id] = Link{};
      links[id].id = id;
      links[id].node = &node;
      node.session = id;
      core->on_connected(id, SessionFacts{"10.0.0.9", "10.0.0.1"});
      tell(node,
           [](Node& n, Instant t, agent::Effects& e) { n.core->on_connected(t, {"10.0.0.2"}, e); });
    });
  }
  void send_up(Link& link, Up what) {
    link.up.push_back(std::move(what));
    link.up_at = std::max(link.up_at, now + random_time(10ms));
    pump_up(link.id, link.up_at);
  }
  void send_down(Link& link, Down what) {
    link.down.push_back(std::move(what));
    link.down_at = std::max(link.down_at, now + random_time(10ms));
    pump_down(link.id, link.down_at);
  }
  void pump_up(SessionId id, Instant when) {
    at(when, [this, id] {
      Link& link = links.at(id);
      if (link.node->is_cut) {
        ++link.owed_up;
        return;
      }
      Up what = std::move(link.up.front());
      link.up.pop_front();
      if (!link.is_up_open) return;
      if (const auto* message = std::get_if<control::AgentMessage>(&what)) {
        trace(*link.node, "-> ", *message);
        call([&](Effects& e) { core->on_message(now, id, *message, e); });
        return;
      }
      link.is_up_open = false;
      bool is_fin = std::get<Mark>(what) == Mark::Fin;
      trace(*link.node, is_fin ? "-> FIN" : "-> RST");
      auto how = is_fin ? Membership::Ending::Fin : Membership::Ending::Reset;
      call([&](Effects& e) { core->on_closed(now, id, how, e); });
    });
  }
  void pump_down(SessionId id, Instant when) {
    at(when, [this, id] {
      Link& link = links.at(id);
      if (link.node->is_cut) {
        ++link.owed_down;
        return;
      }
      Down what = std::move(link.down.front());
      link.down.pop_front();
      if (!link.is_down_open) return;
      if (const auto* message = std::get_if<control::CoordinatorMessage>(&what)) {
        trace(*link.node, "<- ", *message);
        hear(*link.node, id, *message);
      } else {
        lose_session(*link.node, id);
      }
    });
  }
  // What was under way is lost; each end learns of it in its own time.
  void drop(Link& link, Instant when) {
    link.is_up_open = link.is_down_open = false;
    at(when, [this, id = link.id] {
      call([&](Effects& e) { core->on_closed(now, id, Membership::Ending::Reset, e); });
    });
    at(when, [this, id = link.id] { lose_session(*links.at(id).node, id); });
  }
  void lose_session(Node& node, SessionId id) {
    if (node.session != id) return;
    links.at(id).is_down_open = false;
    node.session.reset();
    if (!node.is_alive) return;
    tell(node, [](Node& n, Instant t, agent::Effects& e) { n.core->on_disconnected(t, e); });
    connect_in(node, 50ms + random_time(200ms));
  }
  void hang_up(Node& node, bool is_reset) {
    Link& link = links.at(*node.session);
    node.session.reset();
    link.is_down_open = false;
    send_up(link, is_reset ? Mark::Reset : Mark::Fin);
  }
  void hear(Node& node, SessionId id, const control::CoordinatorMessage& message) {
    if (const auto* welcome = std::get_if<control::Welcome>(&message)) node.epoch = welcome->epoch;
    tell(node, [id, message](Node& n, Instant t, agent::Effects& e) {
      if (n.session == id) n.core->on_message(t, message, e);
    });
  }

  using AgentCall = std::function<void(Node&, Instant, agent::Effects&)>;
  void tell(Node& node, AgentCall what) {
    if (!node.is_alive || node.finish) return;
    if (node.is_frozen) {
      node.backlog.push_back([this, &node, what] { tell(node, what); });
      return;
    }
    agent::Effects effects;
    what(node, to_local(node, now), effects);
    for (const agent::Effect& effect : effects) {
      std::visit([&](const auto& e) { carry_out(node, e); }, effect);
    }
  }
  void carry_out(Node& node, const agent::Tell& effect) {
    if (node.session) send_up(links.at(*node.session), over_the_wire(effect.message));
  }
  void carry_out(Node& node, const agent::Disconnect& effect) {
    node.is_closing = true;
    if (node.session) hang_up(node, effect.is_reset);
  }
  void carry_out(Node& node, const agent::Reconnect&) {
    if (!node.session) return;
    hang_up(node, true);
    at(now, [this, &node] {
      tell(node, [](Node& n, Instant t, agent::Effects& e) { n.core->on_disconnected(t, e); });
      connect_in(node, 50ms);
    });
  }
  void carry_out(Node& node, const agent::StartWorkers& effect) {
    RoundNumber round = effect.world.round;
    for (const auto& other : nodes) {
      checks.require(!has_workers_of_another(*other, round), "workers of two rounds (S1)");
    }
    ++rounds_started;
    node.workers.clear();
    if (has_faults && chance() < options.worker_fails / 20) {
      at(now, [this, &node] {
        Error error{ErrorKind::System, "no such program"};
        tell(node, [error](Node& n, Instant t, agent::Effects& e) {
          n.core->on_start_failed(t, error, e);
        });
      });
      return;
    }
    node.workers.resize(2);
    for (Worker& worker : node.workers) {
      worker.epoch = effect.world.epoch;
      worker.round = effect.world.round;
      worker.ends_at = Instant::never();
      bool fails = has_faults && chance() < options.worker_fails;
      worker.end.exit_code = fails ? 1 : 0;
      end_at(worker, now + 10ms + random_time(has_faults ? 4s : 1s), worker.end.exit_code);
    }
    arm_ends(node);
  }
  void carry_out(Node& node, const agent::StopWorkers& effect) {
    for (Worker& worker : node.workers) {
      bool is_deaf = chance() < 0.2;  // to TERM
      Duration takes = effect.signal == 9 ? Duration{} : std::min(effect.grace, Duration(300ms));
      if (is_deaf) takes = std::min(effect.grace, Duration(3s));
      end_at(worker, now + random_time(takes) + random_time(290ms), -effect.signal);
    }
    arm_ends(node);
  }
  void carry_out(Node& node, const agent::WantPort&) {
    tell(node, [](Node& n, Instant t, agent::Effects& e) { n.core->on_port(t, 40000, e); });
  }
  void carry_out(Node& node, const agent::Fence& effect) {
    bool is_off = effect.deadline.is_never();
    node.fence = is_off ? effect.deadline : to_global(node, effect.deadline);
  }
  template <class Other>
  void carry_out(Node&, const Other&) {}
  void carry_out(Node& node, const agent::Finish& effect) {
    checks.require(!has_workers(node) || effect.how == agent::Finish::How::Error,
                   "an agent ends before its workers");
    node.finish = effect;
    trace(node, "ends: " + std::to_string(static_cast<int>(effect.how)) + " " + effect.text);
    node.is_closing = true;
    checks.on_finish(node.epoch, effect);
    kill_workers(node);
    if (node.session) hang_up(node, true);
  }

  void kill_workers(Node& node) {
    for (Worker& worker : node.workers) end_at(worker, now + random_time(290ms));
    arm_ends(node);
  }
  void arm_ends(Node& node) {
    for (Worker& worker : node.workers) {
      if (worker.is_alive) at(worker.ends_at, [this, &node] { reap(node); });
    }
  }
  void reap(Node& node) {
    bool has_news = false;
    bool is_quiet = true;
    for (Worker& worker : node.workers) {
      if (worker.is_alive && worker.ends_at <= now) {
        worker.is_alive = false;
        has_news = true;
        WorkerEnd end = worker.end;
        tell(node,
             [end](Node& n, Instant t, agent::Effects& e) { n.core->on_worker_end(t, end, e); });
      }
      is_quiet = is_quiet && !worker.is_alive;
    }
    if (!has_news || !is_quiet) return;
    tell(node, [](Node& n, Instant t, agent::Effects& e) { n.core->on_quiet(t, e); });
  }

  // ---- the coordinator's shell
  template <class Call>
  void call(Call what) {
    Effects effects;
    what(effects);
    std::deque<Effect> queue(effects.begin(), effects.end());
    while (!queue.empty()) {
      Effect effect = std::move(queue.front());
      queue.pop_front();
      Effects more;
      std::visit([&](const auto& e) { carry_out(e, more); }, effect);
      queue.insert(queue.end(), more.begin(), more.end());
    }
  }
  void carry_out(const Send& effect, Effects&) {
    Link& link = links.at(effect.session);
    if (const auto* world = std::get_if<control::World>(&effect.message)) {
      checks.on_world(link.node->id.incarnation, *world);
    }
    const auto* decided = std::get_if<control::Decided>(&effect.message);
    if (decided != nullptr && decided->is_success) judge_success(*core->jobs().at("job"));
    send_down(link, over_the_wire(effect.message));
  }
  void judge_success(const Membership& job) {
    for (const auto& node : nodes) {
      bool is_well = has_ended_well(*node, job.epoch(), job.round());
      checks.require(is_well, "success, though not all ended well (R8)");
    }
  }
  void carry_out(const Close& effect, Effects& more) {
    Link& link = links.at(effect.session);
    if (!std::exchange(link.is_up_open, false)) return;
    send_down(link, Mark::Reset);
    core->on_closed(now, effect.session, Membership::Ending::Reset, more);
  }
  void carry_out(const WantStorePort& effect, Effects& more) {
    core->on_store_port(now, effect.run_id, ++ports, more);
  }
  template <class Other>
  void carry_out(const Other&, Effects&) {}

  Instant timer_of(const Node& node) const {
    bool is_deaf = !node.is_alive || node.is_frozen || node.finish;
    return is_deaf ? Instant::never() : to_global(node, node.core->next_deadline());
  }
  void on_timer(Node& node) {
    if (timer_of(node) > now) return;
    tell(node, [](Node& n, Instant t, agent::Effects& e) { n.core->on_time(t, e); });
    checks.require(timer_of(node) > now, "an agent's deadline stays in the past");
  }
  void on_timers() {
    for (auto& node : nodes) {
      if (guardian_of(*node) <= now) {
        node->fence = Instant::never();
        kill_workers(*node);
      }
      on_timer(*node);
    }
    if (core->next_deadline() > now) return;
    call([&](Effects& e) { core->on_time(now, e); });
    checks.require(core->next_deadline() > now, "the coordinator's deadline stays in the past");
  }

  std::multimap<Instant, std::function<void()>> events;
  std::map<SessionId, Link> links;
  uint64_t sessions = 0;
  int64_t ports = 50000;
};

}  // namespace cpprun::test::cluster
