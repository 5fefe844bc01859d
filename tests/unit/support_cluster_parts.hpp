// What a Cluster is made of: agents with their workers and clocks, and the lines between them and
// the coordinator. The printing of events is for one seed that is looked at.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <variant>
#include <vector>

#include "agent/core/agent.hpp"
#include "common/limits.hpp"
#include "rendezvous/protocol/control.hpp"
#include "rendezvous/protocol/control_fields.hpp"

namespace cpprun::test::cluster {

using namespace std::chrono_literals;

struct Dice {
  std::mt19937_64 random;

  double chance() { return std::uniform_real_distribution<>(0, 1)(random); }
  Duration random_time(Duration most) {
    return Duration(std::uniform_int_distribution<int64_t>(0, most.count())(random));
  }
};

struct ClusterOptions {
  uint64_t seed = 0;
  int64_t min_nodes = 1;
  int64_t max_nodes = 1;
  int64_t max_restarts = 3;
  Duration lease = limits::kLease;
  bool is_first_embedded = false;
  double worker_fails = 0.1;  // chance of each worker in each round, while there are faults
};

struct Worker {
  Epoch epoch;
  RoundNumber round;
  WorkerEnd end;
  Instant ends_at;
  bool is_alive = true;
};
inline void end_at(Worker& worker, Instant when, int exit_code = -9) {
  if (!worker.is_alive || worker.ends_at <= when) return;
  worker.ends_at = when;
  worker.end.exit_code = exit_code;
}
struct Node {
  NodeId id;
  std::unique_ptr<agent::Agent> core;
  double rate = 1;  // of its clock
  bool is_alive = true;
  bool is_frozen = false;
  bool is_cut = false;
  bool is_closing = false;  // no connection is made any more
  std::optional<SessionId> session;
  Epoch epoch;
  Instant fence = Instant::never();  // global time, the guardian's page
  std::vector<Worker> workers;
  std::deque<std::function<void()>> backlog;  // what a frozen agent has not seen
  std::optional<agent::Finish> finish;
};

inline bool has_workers_of_another(const Node& node, RoundNumber round) {
  return std::any_of(node.workers.begin(), node.workers.end(),
                     [&](const Worker& w) { return w.is_alive && w.round != round; });
}
inline bool has_workers(const Node& node) {
  return has_workers_of_another(node, RoundNumber(-1));
}

// Did all workers that it has for this round end well?
inline bool has_ended_well(const Node& node, Epoch epoch, RoundNumber round) {
  return std::all_of(node.workers.begin(), node.workers.end(), [&](const Worker& w) {
    bool is_of_it = w.epoch == epoch && w.round == round;
    return !is_of_it || (!w.is_alive && w.end.is_success());
  });
}
// A farewell or a break, in order with the messages before it.
enum class Mark { Fin, Reset };
using Up = std::variant<control::AgentMessage, Mark>;
using Down = std::variant<control::CoordinatorMessage, Mark>;
struct Link {
  SessionId id;
  Node* node = nullptr;
  bool is_up_open = true;    // the coordinator still reads
  bool is_down_open = true;  // the agent still reads
  std::deque<Up> up;
  std::deque<Down> down;
  Instant up_at, down_at;          // arrival of the newest, so that they stay in order
  int owed_up = 0, owed_down = 0;  // arrivals that a cut has held up
};

inline Instant to_local(const Node& node, Instant now) {
  return Instant::from_nanoseconds(
      std::llround(static_cast<double>(now.nanoseconds()) * node.rate));
}
inline Instant to_global(const Node& node, Instant local) {
  if (local.is_never()) return local;
  double ns = std::ceil(static_cast<double>(local.nanoseconds()) / node.rate);
  return Instant::from_nanoseconds(static_cast<int64_t>(ns) + 1);
}

inline Instant guardian_of(const Node& node) {
  return node.is_alive && !node.finish ? node.fence : Instant::never();
}

inline agent::AgentOptions agent_options(const ClusterOptions& options, const Node& node) {
  agent::AgentOptions made;
  made.hello.run_id = "job";
  made.hello.node = node.id;
  made.facts.nproc = 2;
  control::Terms& terms = made.facts.terms;
  terms.min_nodes = options.min_nodes;
  terms.max_nodes = options.max_nodes;
  terms.max_restarts = options.max_restarts;
  terms.scale_up_interval = 3s;
  terms.heartbeat = options.lease / 5;
  terms.lease = options.lease;
  made.join_timeout = 60s;
  made.stop_grace = 5s;
  return made;
}

inline void print_event(Instant now, const Node& node, const std::string& what) {
  std::fprintf(stderr, "%9.4f n%-3d %s\n", static_cast<double>(now.nanoseconds()) / 1e9,
               static_cast<int>(node.id.incarnation.value), what.c_str());
}
template <class Message>
void print_message(Instant now, const Node& node, const char* arrow, const Message& message) {
  std::visit(
      [&](const auto& m) {
        std::string name = control::name_of(m);
        if (name == "ping" || name == "pong") return;
        if constexpr (requires { m.round; }) name += " " + std::to_string(m.round.value);
        if constexpr (requires { m.why; }) name += ": " + m.why;
        print_event(now, node, arrow + name);
      },
      message);
}

}  // namespace cpprun::test::cluster
