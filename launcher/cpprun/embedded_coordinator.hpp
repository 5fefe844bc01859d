// EmbeddedCoordinator: the rendezvous server inside a launcher, on a thread and a loop of its own.
// The agent of the same process connects to it like any other agent: over TCP, or, in a job that
// cannot exceed one node, over a socket pair.
//
// Whether this node hosts it is known at start, without a name lookup, in three cases: standalone
// always hosts; `is_host` decides where given; with the static backend node rank 0 hosts. Otherwise
// each connection attempt of the agent decides again: this node hosts if the port is free and one
// of the endpoint's addresses is local, or the endpoint has no address yet and names this machine.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "agent/core/config.hpp"
#include "common/endpoint.hpp"
#include "common/ids.hpp"
#include "common/machine/unique_fd.hpp"
#include "common/result.hpp"
#include "launcher/cpprun/idle_wait.hpp"
#include "rendezvous/protocol/control/control.hpp"

namespace cpprun {

class EmbeddedCoordinator {
 public:
  // At the start of the launcher, without a name lookup. Null: this node does not host, or not yet.
  // `embedded` is the agent of this process.
  static Result<std::unique_ptr<EmbeddedCoordinator>> start(const RendezvousConfig& config,
                                                            Incarnation embedded);
  // Whether start_if_free() can ever start one.
  static bool may_start_later(const RendezvousConfig& config);
  // At a connection attempt of the agent. `addresses` are the endpoint's, numeric; empty if its
  // name does not resolve. Null: this node does not host now.
  static std::unique_ptr<EmbeddedCoordinator> start_if_free(
      const RendezvousConfig& config, Incarnation embedded,
      const std::vector<std::string>& addresses);
  // Call it when the coordinator has died and our agent, `standby`, leads the job (R16). Listens at
  // the standby's port on every interface and redirects clients of the job's endpoint to it (R17);
  // `job_key` proves there that it leads the job.
  static Result<std::unique_ptr<EmbeddedCoordinator>> take_over(const RendezvousConfig& config,
                                                                Term term,
                                                                const control::Standby& standby,
                                                                const std::string& job_key);
  ~EmbeddedCoordinator();  // stops at once

  // Where the agent of this process connects to.
  const Endpoint& endpoint() const;

  // For the agent of this process: its end of a socket pair that the coordinator serves. Not open
  // if the coordinator is not at `at`, has failed, or may lead other nodes: the agent then uses
  // TCP.
  UniqueFd connect(const Endpoint& at);

  // Returns when no agent needs the coordinator any more, or when `stay` is over. Warns if that
  // takes a while.
  void wait_until_idle(IdleWait& stay);

 private:
  class Impl;
  explicit EmbeddedCoordinator(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace cpprun
