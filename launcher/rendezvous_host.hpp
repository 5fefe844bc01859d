// RendezvousHost: the rendezvous server inside a launcher, on a thread and a loop of its own. The
// agent of the same process talks to it over a socket like any other.
//
// Whether this node hosts is decided here: standalone always; `is_host` where given; static by node
// rank 0; otherwise when one of the endpoint's addresses is an address of this machine (never by
// names) and the port is free.
#pragma once

#include <memory>

#include "agent/core/config.hpp"
#include "common/endpoint.hpp"
#include "common/ids.hpp"
#include "common/result.hpp"
#include "launcher/stay.hpp"
#include "rendezvous/protocol/control.hpp"

namespace cpprun {

class RendezvousHost {
 public:
  // Null: this node does not host. `embedded` is the agent of this process.
  static Result<std::unique_ptr<RendezvousHost>> start(const RendezvousConfig& config,
                                                       Incarnation embedded);
  // Our agent, `heir`, leads its job from here on, at this port on every interface, because the
  // coordinator has died (R16). Whoever listens at the job's endpoint is told so (R17).
  static Result<std::unique_ptr<RendezvousHost>> take_over(const RendezvousConfig& config,
                                                           Epoch epoch, const control::Heir& heir);
  ~RendezvousHost();  // stops at once

  // Where the agent of this process reaches it.
  const Endpoint& endpoint() const;

  // Returns when no agent needs it any more, or `stay` is over; says so on stderr if that takes a
  // while.
  void wait_until_idle(Stay& stay);

 private:
  class Impl;
  explicit RendezvousHost(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace cpprun
