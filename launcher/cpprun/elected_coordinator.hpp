// ElectedCoordinator: takes part in the leader election in etcd (R18) on a thread and a loop of its
// own. While elected it runs the job's coordinator at a port that the agent has reserved. When
// another process is elected, it notifies the agent.
//
// Losing the election stops the coordinator at once; it may be elected again.
#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "agent/core/config.hpp"
#include "agent/daemon/agent_daemon.hpp"
#include "common/ids.hpp"
#include "common/result.hpp"
#include "common/time.hpp"
#include "launcher/cpprun/idle_wait.hpp"

namespace cpprun {

class ElectedCoordinator {
 public:
  // `embedded` and `election_callbacks` belong to this process's agent; `port` is what it reserved.
  static Result<std::unique_ptr<ElectedCoordinator>> start(const RendezvousConfig& config,
                                                           Incarnation embedded, uint16_t port,
                                                           ElectionCallbacks election_callbacks);
  ~ElectedCoordinator();  // at once; other nodes follow when our leader lease in etcd expires

  // The agent reports its state through it. From any thread, as long as this object lives.
  Arbiter arbiter();

  // Call it when the agent has ended. Waits as long as other agents need the coordinator here, or
  // until `stay` is over, and then resigns.
  void leave(IdleWait& stay);

 private:
  class Impl;
  explicit ElectedCoordinator(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace cpprun
