// A node's restart: in the agent's core, from a worker's failure to the start of the next round's
// workers; and the real cost of starting a process that exits at once.
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <memory>
#include <string>
#include <vector>

#include "agent/core/agent.hpp"
#include "agent/process/spawn/spawn.hpp"
#include "bench/parts/parts.hpp"
#include "common/check.hpp"

namespace cpprun::bench {
namespace {

constexpr int64_t kWorkers = 8;

agent::AgentOptions options() {
  agent::AgentOptions made;
  made.hello.run_id = "job";
  made.hello.node = NodeId{"node0", Incarnation(1)};
  made.facts.nproc = kWorkers;
  made.join_timeout = std::chrono::seconds(600);
  made.stop_grace = std::chrono::seconds(30);
  return made;
}

// Runs beside the coordinator, so it sends no heartbeats.
class Node {
 public:
  Node() : core_(options()) {
    core_.start(now_, effects_);
    core_.on_port(now_, 40000, effects_);
    core_.on_connected(now_, {"10.0.0.1"}, Endpoint{"10.0.0.1", 29500}, effects_);
    control::Registered welcome;
    welcome.term = Term(1);
    core_.on_message(now_, welcome, effects_);
    run_next_round();
  }

  void fail_and_restart() {
    for (int64_t rank = 0; rank < kWorkers; ++rank) {
      WorkerExit end;
      end.local_rank = LocalRank(rank);
      end.exit_code = rank == 0 ? 1 : -15;  // the others were stopped
      core_.on_worker_exit(now_, end, effects_);
    }
    core_.on_all_workers_gone(now_, effects_);
    core_.on_port(now_, 40000, effects_);
    run_next_round();
  }

 private:
  void run_next_round() {
    control::RankAssignment assignment;
    assignment.term = Term(1);
    assignment.round = RoundNumber(++round_);
    assignment.group_size = 1;
    assignment.world_size = assignment.role_world_size = kWorkers;
    assignment.restart_count = round_ - 1;
    core_.on_message(now_, assignment, effects_);
    core_.on_prepared(now_, effects_);
    core_.on_started(effects_);
    CPPRUN_CHECK(core_.state() == agent::Agent::State::Running);
    effects_.clear();
  }

  Instant now_ = Instant::from_nanoseconds(1'000'000'000);
  agent::Effects effects_;
  agent::Agent core_;
  int64_t round_ = 0;
};

void spawn_and_reap(const SpawnPlan& plan) {
  SpawnContext ground;
  const auto spawned = ground.spawn(plan);
  CPPRUN_CHECK(spawned.ok());
  siginfo_t info{};
  while (::waitid(P_PID, static_cast<id_t>(spawned->pid), &info, WEXITED) < 0 && errno == EINTR) {
  }
}

}  // namespace

BENCH_PART(restart_8_workers) {
  return [node = std::make_shared<Node>()](size_t n) {
    while (n-- > 0) node->fail_and_restart();
  };
}

BENCH_PART(spawn) {
  return [](size_t n) {
    const std::vector<std::string> argv{"/bin/true"}, environment;
    while (n-- > 0) spawn_and_reap({.program = argv[0], .argv = argv, .environment = environment});
  };
}

}  // namespace cpprun::bench
