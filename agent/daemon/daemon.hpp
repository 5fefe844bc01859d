// AgentDaemon: one run of the agent on this node. Joins the agent's core with processes, the line
// to the coordinator, signals, log folders and the reaper process, on one loop and one thread.
//
// Thread: the one that calls make() and run(), which must be the process's first (parent-death
// signals are tied to it).
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "agent/core/config.hpp"
#include "common/endpoint.hpp"
#include "common/ids.hpp"
#include "common/result.hpp"
#include "common/time.hpp"
#include "rendezvous/protocol/control/control.hpp"

namespace cpprun {

// Starts a coordinator at the standby's port, because the one that led the job has died (R16), and
// returns where our own agent reaches it.
using BecomeCoordinator = std::function<Result<Endpoint>(Term, const control::Standby&)>;

// Starts a coordinator at the job's endpoint if that is this machine and nobody listens there, and
// returns where our own agent reaches it. `addresses`: the endpoint's, numeric; none: its name is
// not known.
using HostJob = std::function<std::optional<Endpoint>(const std::vector<std::string>& addresses)>;

// How an agent whose coordinator is elected (R18) hears of it. From any thread, also when the agent
// has ended.
struct ElectionCallbacks {
  std::function<void(const Endpoint&)> led_from;        // the job is led from there
  std::function<void(const std::string&)> no_election;  // why it is not known who leads
};

// Whom such an agent tells, from its own thread, whether it is led and whether it would lead: after
// each change and at each heartbeat.
using Arbiter = std::function<void(bool is_led, bool would_lead)>;

class AgentDaemon {
 public:
  // Forks the reaper process, makes the log folder, reserves a fixed master port. Requires: no
  // other thread yet.
  static Result<std::unique_ptr<AgentDaemon>> make(AgentConfig config);
  ~AgentDaemon();

  // Who we are; a coordinator in our own process must know it.
  Incarnation incarnation() const;

  // This agent may lead its job one day: it keeps a port for that. Before run().
  void may_lead(BecomeCoordinator take_over);

  // This agent asks before each try to reach its coordinator whether this process is to host it, as
  // long as no coordinator has welcomed it. Before run().
  void may_host(HostJob host_job);

  // The coordinator is elected, and may be in this process: a port is kept for that. Before
  // run_elected().
  Result<uint16_t> keep_port();
  ElectionCallbacks election_callbacks();

  // What the launcher has measured of its own start; before run().
  void took(const StartTimes& times);

  // Runs the job to its end and returns the exit code. Prints what people must know on stderr.
  // `is_own`: the coordinator is in this process.
  int run(const Endpoint& coordinator, bool is_own);
  // The same, with coordinators that the callbacks report.
  int run_elected(Arbiter arbiter);
  // After it: how long a coordinator in this process may stay for other agents. Nothing: as long as
  // they need it; zero: not at all. A signal asked this process to leave.
  std::optional<Duration> may_stay() const;

 private:
  class Impl;
  explicit AgentDaemon(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace cpprun
