// ElectedCoordinator: the part of an agent's process that stands for election in etcd (R18), on a
// thread and a loop of its own. While elected it holds the job's coordinator, at a port that the
// agent has kept for it; who is elected elsewhere is told to the agent.
//
// Losing the election ends the coordinator at once; it may be elected again.
#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "agent/core/config.hpp"
#include "agent/daemon/agent_daemon.hpp"
#include "common/ids.hpp"
#include "common/result.hpp"
#include "common/time.hpp"
#include "launcher/cpprun/stay.hpp"

namespace cpprun {

class ElectedCoordinator {
 public:
  // `embedded` is the agent of this process, `election_callbacks` its own, `port` what it has kept.
  static Result<std::unique_ptr<ElectedCoordinator>> start(const RendezvousConfig& config,
                                                           Incarnation embedded, uint16_t port,
                                                           ElectionCallbacks election_callbacks);
  ~ElectedCoordinator();  // at once: whoever we led waits for the end of our lease in etcd

  // What the agent tells how it stands. From any thread, as long as this lives.
  Arbiter arbiter();

  // The agent has ended. Stays as long as others need the coordinator here, or until `stay` is
  // over, and then gives its office up.
  void leave(Stay& stay);

 private:
  class Impl;
  explicit ElectedCoordinator(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace cpprun
