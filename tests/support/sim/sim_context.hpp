// What the programs of a cluster share: time, the network, the trace, the checks, and what their
// workers are to do.
#pragma once

#include <functional>
#include <vector>

#include "rendezvous/protocol/control/control.hpp"
#include "tests/support/sim/checks.hpp"
#include "tests/support/sim/event_queue.hpp"
#include "tests/support/sim/network.hpp"
#include "tests/support/sim/prng.hpp"
#include "tests/support/sim/trace.hpp"

namespace cpprun::sim {

// What one worker does with its life.
struct WorkerBehavior {
  Duration ready_in{};                      // until then TERM ends it at once, and it saves nothing
  Duration runs = std::chrono::seconds(1);  // from then on
  int exit_code = 0;                        // as WorkerExit has it
  bool ignores_sigterm = false;             // to TERM: it ends by KILL only
  Duration outlives_kill{};                 // its process, which runs no code any more then
  bool is_hanging = false;                  // never ends of itself
  Duration stops_in = std::chrono::milliseconds(20);  // from TERM to its end
  bool can_save = false;  // asked to stop, it saves and ends with kStoppedResumable
  Duration saves_each{};  // and as it goes; zero: it does not. The same for a whole node
};
struct SpawnPlan {
  bool fails = false;                 // the program can't be started
  std::vector<WorkerBehavior> lives;  // one per local rank
  bool is_resume_unusable = false;    // they begin with an older snapshot than they were told to
};

// What becomes of a fetch between agents.
struct FetchPlan {
  Duration takes{};
  bool fails = false;
  bool is_damaged = false;
};

class Node;
class Etcd;

struct SimContext {
  EventQueue& event_queue;
  Network& network;
  Trace& trace;
  Checks& checks;
  Prng prng;
  HostId coordinator_host = 0;
  std::function<SpawnPlan(const Node&, const control::RankAssignment&)> plan;
  std::function<void()> on_workers_changed;  // some live or end
  std::function<FetchPlan()> plan_fetch;
  Prng snapshot_prng;    // apart: jobs without snapshots run as if there were none
  Etcd* etcd = nullptr;  // the jobs' arbiter (R18); none: coordinators at an endpoint, and standbys
};

}  // namespace cpprun::sim
