#include "agent/process/spawn/port_reservation.hpp"

#include <errno.h>
#include <sys/socket.h>

#include <utility>

#include "common/machine/port_owner.hpp"
#include "common/machine/sockets.hpp"
#include "common/thread/loop_mark.hpp"

namespace cpprun {
namespace {

constexpr int kPortTries = 64;  // free ports that another reservation already holds
// Connections from processes that look up the owner; each stays in the backlog.
constexpr int kBacklog = 128;

std::string name_of(uint16_t port) { return "cpprun/port/" + std::to_string(port); }

std::string name_owner(uint16_t port) {
  const UniqueFd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const std::optional<SocketAddress> address = abstract_address(name_of(port));
  ucred peer{};
  socklen_t size = sizeof peer;
  if (!socket.is_open() || ::connect(socket.get(), address->get(), address->size) < 0) return "";
  if (::getsockopt(socket.get(), SOL_SOCKET, SO_PEERCRED, &peer, &size) < 0 || peer.pid <= 0)
    return "";
  const Unblocking name("the kernel has it in memory");
  return describe_process(peer.pid);
}

Error taken_error(uint16_t port, const std::string& owner) {
  const std::string by = owner.empty() ? "" : " by " + owner;
  return Error{ErrorKind::System, "port " + std::to_string(port) + " is taken" + by +
                                      "; choose another with --master-port, or end what holds it"};
}

Error refused_error(uint16_t port, int error) {
  const Unblocking table("the kernel's own tables of sockets and descriptors");
  if (error == EADDRINUSE) return taken_error(port, port_owner(port));
  return system_error("cannot reserve port " + std::to_string(port), error);
}

}  // namespace

Result<PortReservation> PortReservation::make(std::optional<uint16_t> port) {
  for (int i = 0; i < kPortTries; ++i) {
    UniqueFd socket = bind_all(port.value_or(0));
    if (!socket.is_open()) return refused_error(port.value_or(0), errno);
    const uint16_t number = local_port(socket.get());
    UniqueFd name = listen_abstract(name_of(number), SOCK_STREAM, kBacklog);
    if (name.is_open()) return PortReservation(number, std::move(socket), std::move(name));
    if (errno != EADDRINUSE)
      return system_error("cannot reserve port " + std::to_string(number), errno);
    if (port) return taken_error(number, name_owner(number));
  }
  return Error{ErrorKind::System, "no free port could be reserved; see ip_local_port_range"};
}

}  // namespace cpprun
