// EmbeddedCoordinator: the rendezvous server inside a launcher, on a thread and a loop of its own.
// The agent of the same process talks to it over a socket like any other.
//
// Whether this node hosts: standalone always; `is_host` where given; static by node rank 0; these
// are known from the start, without a look-up. Else it is decided at each attempt of the agent to
// reach its coordinator: where one of the endpoint's addresses is an address of this machine, or
// the endpoint's name has none yet and is that of this machine, and the port is free.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "agent/core/config.hpp"
#include "common/endpoint.hpp"
#include "common/ids.hpp"
#include "common/result.hpp"
#include "launcher/cpprun/stay.hpp"
#include "rendezvous/protocol/control/control.hpp"

namespace cpprun {

class EmbeddedCoordinator {
 public:
  // At the start of the launcher, without a look-up. Null: this node does not host, or not yet.
  // `embedded` is the agent of this process.
  static Result<std::unique_ptr<EmbeddedCoordinator>> start(const RendezvousConfig& config,
                                                            Incarnation embedded);
  // Whether start_if_free() can ever start one.
  static bool may_start_later(const RendezvousConfig& config);
  // At an attempt of the agent. `addresses`: the endpoint's, numeric; none: its name is not known.
  // Null: this node does not host now.
  static std::unique_ptr<EmbeddedCoordinator> start_if_free(
      const RendezvousConfig& config, Incarnation embedded,
      const std::vector<std::string>& addresses);
  // Our agent, `standby`, leads its job from here on, at this port on every interface, because the
  // coordinator has died (R16). Whoever listens at the job's endpoint is told so (R17).
  static Result<std::unique_ptr<EmbeddedCoordinator>> take_over(const RendezvousConfig& config,
                                                                Term term,
                                                                const control::Standby& standby);
  ~EmbeddedCoordinator();  // stops at once

  // Where the agent of this process reaches it.
  const Endpoint& endpoint() const;

  // Returns when no agent needs it any more, or `stay` is over; says so on stderr if that takes a
  // while.
  void wait_until_idle(Stay& stay);

 private:
  class Impl;
  explicit EmbeddedCoordinator(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace cpprun
