// PortReservation: reserves a TCP port for worker 0, without listening, until the agent drops it.
//
// It binds a socket on [::] (0.0.0.0 where there is no IPv6) with SO_REUSEADDR. torch's server can
// then bind and serve the same port, while the kernel gives the port to no other socket and refuses
// a bind without the option. Two reservations do not exclude each other by that, so each also binds
// the abstract unix socket "cpprun/port/<port>", which is exclusive per network namespace and names
// the owner.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "common/machine/unique_fd.hpp"
#include "common/result.hpp"

namespace cpprun {

class PortReservation {
 public:
  // Reserves `port`, or any free one. If it is taken, the error names the port and, where visible,
  // its owner (program and pid).
  static Result<PortReservation> make(std::optional<uint16_t> port);

  uint16_t port() const { return port_; }

 private:
  PortReservation(uint16_t port, UniqueFd socket, UniqueFd name)
      : port_(port), socket_(std::move(socket)), name_(std::move(name)) {}

  uint16_t port_ = 0;
  UniqueFd socket_;  // bound TCP socket
  UniqueFd name_;    // abstract unix socket
};

}  // namespace cpprun
