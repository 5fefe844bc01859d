// CoordinatorInstance: a coordinator and its TCP server on the caller's loop. EmbeddedCoordinator
// and ElectedCoordinator own one and control its lifetime.
//
// Thread: the loop's, or the constructing thread before the loop runs.
#pragma once

#include <memory>
#include <string>
#include <utility>

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

  // Returns the port; an empty `at.host` means every interface.
  Result<uint16_t> listen(const Endpoint& at);
  // As Server::adopt().
  void adopt(UniqueFd end, const std::string& address) { server_->adopt(std::move(end), address); }
  ControlService& service() { return service_; }
  // Closes all connections without notifying the peers. The loop may still run callbacks that it
  // has queued, so the owner keeps this object for one more turn of the loop.
  void stop();

 private:
  ControlService service_;
  std::unique_ptr<Server> server_;
};

// The options that all coordinators of this process share.
CoordinatorOptions coordinator_options_of(const RendezvousConfig& config, Incarnation embedded);

}  // namespace cpprun
