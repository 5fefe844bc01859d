// CoordinatorInstance: a coordinator and the server that it speaks by, on somebody's loop. Who sits
// here and for how long is the business of EmbeddedCoordinator and ElectedCoordinator.
//
// Thread: the loop's, or the one that makes it before the loop runs.
#pragma once

#include <memory>
#include <string>

#include "agent/core/config.hpp"
#include "common/endpoint.hpp"
#include "common/result.hpp"
#include "rendezvous/server/control_service.hpp"
#include "rendezvous/server/loop.hpp"
#include "rendezvous/server/server.hpp"

namespace cpprun {

class CoordinatorInstance {
 public:
  CoordinatorInstance(ServerLoop& loop, const RendezvousConfig& config, CoordinatorOptions options);

  // The port taken; `at.host` "" is every interface.
  Result<uint16_t> listen(const Endpoint& at);
  ControlService& service() { return service_; }
  // All connections end at once, and nobody is told why. What the loop has begun for it may still
  // come: it is to live for one more turn of the loop.
  void stop();

 private:
  ControlService service_;
  std::unique_ptr<Server> server_;
};

// What each coordinator of this process is told of itself and its job.
CoordinatorOptions coordinator_options_of(const RendezvousConfig& config, Incarnation embedded);

}  // namespace cpprun
