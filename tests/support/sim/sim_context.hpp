// State shared by the programs of a cluster: time, the network, the trace, the checks, and the
// behaviour of their workers.
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

// The behaviour of one worker.
struct WorkerBehavior {
  Duration ready_in{};  // before that SIGTERM ends it immediately, without a save
  Duration runs = std::chrono::seconds(1);  // counted from then on
  int exit_code = 0;                        // in the form of WorkerExit
  bool ignores_sigterm = false;             // only SIGKILL ends it
  Duration outlives_kill{};                 // its process stays for this time without running code
  bool is_hanging = false;                  // never ends by itself
  Duration stops_in = std::chrono::milliseconds(20);  // from SIGTERM to its end
  bool can_save = false;  // on request it saves and ends with kStoppedResumable
  // From the request to regroup to its answer; zero: it can't. Reports its first step at once.
  Duration releases_in{};
  Duration saves_each{};  // interval of its saves; zero: none. The same for a whole node
};
struct SpawnPlan {
  bool fails = false;                 // the program can't be started
  std::vector<WorkerBehavior> lives;  // one per local rank
  bool is_resume_unusable = false;    // they begin with an older snapshot than the round's
};

// The result of a fetch between agents.
struct FetchPlan {
  Duration takes{};
  bool fails = false;
  bool is_damaged = false;
};

// The result of a check of the link between two agents.
struct LinkPlan {
  Duration takes = std::chrono::milliseconds(200);
  bool fails = false;
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
  std::function<void()> on_workers_changed;  // a worker started or ended
  std::function<FetchPlan()> plan_fetch;
  Prng snapshot_prng;    // separate, so that jobs without snapshots draw the same numbers
  Etcd* etcd = nullptr;  // the jobs' arbiter (R18); null: coordinators at an endpoint, and standbys
  std::function<LinkPlan(const Node&, int64_t peer_port)> plan_link{};  // with --link-check
};

}  // namespace cpprun::sim
