// PortReservation: keeps a TCP port for worker 0, without listening, until the agent drops it.
//
// A socket on [::] (0.0.0.0 where there is no IPv6), bound with SO_REUSEADDR: torch's server may
// bind and serve the same port, the kernel never hands it out, a bind without the option is
// refused. Two such binds do not exclude each other, so the abstract unix socket
// "cpprun/port/<port>" beside it does, per network namespace, and names the holder.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "common/result.hpp"

namespace cpprun {

class PortReservation {
 public:
  // Any free port, or `port`. Taken: an Error that names the port and, where visible, who holds it
  // (program and pid).
  static Result<PortReservation> make(std::optional<uint16_t> port);

  PortReservation(PortReservation&& other) noexcept;
  PortReservation& operator=(PortReservation&& other) noexcept;
  ~PortReservation();

  uint16_t port() const { return port_; }

 private:
  PortReservation(uint16_t port, int socket, int name)
      : port_(port), socket_(socket), name_(name) {}
  void drop();

  uint16_t port_ = 0;
  int socket_ = -1;  // bound TCP socket
  int name_ = -1;    // abstract unix socket
};

}  // namespace cpprun
