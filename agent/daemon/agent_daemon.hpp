// AgentDaemon: one run of the agent on this node. It connects the agent's core with the processes,
// the coordinator, signals, log folders and the reaper process, on one loop and one thread.
//
// An interface, so that the launcher does not depend on Asio and the parts of the agent.
//
// Thread: make() and run() must be called on the main thread.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "agent/core/config.hpp"
#include "common/endpoint.hpp"
#include "common/ids.hpp"
#include "common/machine/unique_fd.hpp"
#include "common/result.hpp"
#include "common/time.hpp"
#include "rendezvous/protocol/control/control.hpp"

namespace cpprun {

// Starts a coordinator at the standby's port after the former coordinator has died (R16); returns
// the endpoint for this agent.
using BecomeCoordinator =
    std::function<Result<Endpoint>(Term, const control::Standby&, const std::string& job_key)>;

// Starts a coordinator at the job's endpoint if that is on this machine and the port is free;
// returns the endpoint for this agent. `addresses`: the numeric addresses of the endpoint; empty if
// its name cannot be resolved.
using HostJob = std::function<std::optional<Endpoint>(const std::vector<std::string>& addresses)>;

// Connects this agent to a coordinator in this process that listens at `at`, without TCP. Not open:
// there is none, or it wants TCP.
using ConnectInProcess = std::function<UniqueFd(const Endpoint& at)>;

// How an agent with elected coordinators (R18) learns about the leader. The launcher may call these
// on any thread, also after the agent has ended.
struct ElectionCallbacks {
  std::function<void(const Endpoint&)> led_from;        // the leader's endpoint
  std::function<void(const std::string&)> no_election;  // why the leader is unknown
};

// Such an agent reports on its own thread, after each change and at each heartbeat, whether it has
// a leader and whether it is a candidate.
using Arbiter = std::function<void(bool is_led, bool would_lead)>;

// The end of a run, before a temporary run folder is removed.
struct EndOfRun {
  const std::string& run_folder;  // "" with --log-dir=/dev/null
  bool speaks_for_job;            // true on one node: of group rank 0 in the last round
  bool is_well;                   // the job has succeeded or was stopped
};

class AgentDaemon {
 public:
  // Forks the reaper process, creates the log folder, reserves a fixed master port. Requires: the
  // process has no other thread yet.
  static Result<std::unique_ptr<AgentDaemon>> make(AgentConfig config);
  virtual ~AgentDaemon() = default;
  AgentDaemon(const AgentDaemon&) = delete;

  // The id of this node, for a coordinator in this process.
  virtual Incarnation incarnation() const = 0;

  // Lets this agent become the standby coordinator; it reserves a port for that. Before run().
  virtual void may_lead(BecomeCoordinator take_over) = 0;

  // Lets this agent host the coordinator: until a coordinator has registered it, the agent calls
  // `host_job` before each connection attempt. Before run().
  virtual void may_host(HostJob host_job) = 0;

  // Before run().
  virtual void may_connect_in_process(ConnectInProcess connect) = 0;

  // Reserves a port for an elected coordinator in this process. Before run_elected().
  virtual Result<uint16_t> keep_port() = 0;
  virtual ElectionCallbacks election_callbacks() = 0;

  // Calls `look` on the main thread, after the loop has ended. Before run().
  void at_end(std::function<void(const EndOfRun&)> look) { at_end_ = std::move(look); }

  // The launcher's measurements of its own start. Before run().
  virtual void set_start_times(const StartTimes& times) = 0;

  // Runs the job to its end and returns the exit code. Prints messages for the user on stderr.
  // `is_own`: the coordinator is in this process.
  virtual int run(const Endpoint& coordinator, bool is_own) = 0;
  // The same with the coordinators that election_callbacks() reports.
  virtual int run_elected(Arbiter arbiter) = 0;
  // After the run: how long a coordinator in this process may serve other agents. nullopt: as long
  // as they need it. A duration, possibly zero: a signal asked this process to end.
  virtual std::optional<Duration> may_stay() const = 0;
  // After run(): the hosts that the job has excluded.
  virtual std::vector<std::string> excluded_hosts() const = 0;

 protected:
  AgentDaemon() = default;

  std::function<void(const EndOfRun&)> at_end_;  // may be empty

 private:
  class Impl;
};

}  // namespace cpprun
