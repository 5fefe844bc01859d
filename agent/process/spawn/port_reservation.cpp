#include "agent/process/spawn/port_reservation.hpp"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <utility>

#include "common/machine/port_owner.hpp"
#include "common/machine/unique_fd.hpp"

namespace cpprun {
namespace {

constexpr int kTries = 64;  // free ports that another reservation already holds
constexpr int kBacklog =
    128;  // Connections from processes that look up the owner; each stays in the backlog.

struct NameAddress {
  sockaddr_un address{};
  socklen_t size = 0;
};

NameAddress name_of(uint16_t port) {
  NameAddress name;
  name.address.sun_family = AF_UNIX;
  const std::string text = "cpprun/port/" + std::to_string(port);
  ::memcpy(name.address.sun_path + 1, text.data(), text.size());  // a leading zero byte: abstract
  name.size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + text.size());
  return name;
}

UniqueFd unix_socket() {
  return UniqueFd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
}

// Not open: another process has the name (errno EADDRINUSE), or the kernel refused.
UniqueFd bind_name(uint16_t port) {
  UniqueFd socket = unix_socket();
  const NameAddress name = name_of(port);
  const auto* address = reinterpret_cast<const sockaddr*>(&name.address);
  if (!socket.is_open() || ::bind(socket.get(), address, name.size) < 0) return UniqueFd();
  ::listen(socket.get(), kBacklog);  // lets other processes find the owner by connecting
  return socket;
}

std::string name_owner(uint16_t port) {
  const UniqueFd socket = unix_socket();
  const NameAddress name = name_of(port);
  const auto* address = reinterpret_cast<const sockaddr*>(&name.address);
  ucred peer{};
  socklen_t size = sizeof peer;
  if (!socket.is_open() || ::connect(socket.get(), address, name.size) < 0) return "";
  if (::getsockopt(socket.get(), SOL_SOCKET, SO_PEERCRED, &peer, &size) < 0 || peer.pid <= 0)
    return "";
  return describe_process(peer.pid);
}

// A socket bound to the port on all addresses. Not open: errno has the reason.
UniqueFd bind_port(uint16_t port) {
  const int one = 1, zero = 0;
  UniqueFd socket(::socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (socket.is_open()) {
    ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    ::setsockopt(socket.get(), IPPROTO_IPV6, IPV6_V6ONLY, &zero, sizeof zero);
    sockaddr_in6 address{};
    address.sin6_family = AF_INET6;
    address.sin6_port = htons(port);
    if (::bind(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0)
      return socket;
    if (errno != EADDRNOTAVAIL && errno != EAFNOSUPPORT) return UniqueFd();
  }
  socket.reset(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));  // the kernel has no IPv6
  if (!socket.is_open()) return UniqueFd();
  ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  if (::bind(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0)
    return socket;
  return UniqueFd();
}

uint16_t port_of(const UniqueFd& socket) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  ::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&address), &size);
  return ntohs(address.ss_family == AF_INET6 ? reinterpret_cast<sockaddr_in6*>(&address)->sin6_port
                                             : reinterpret_cast<sockaddr_in*>(&address)->sin_port);
}

Error taken_error(uint16_t port, const std::string& owner) {
  const std::string by = owner.empty() ? "" : " by " + owner;
  return Error{ErrorKind::System, "port " + std::to_string(port) + " is taken" + by +
                                      "; choose another with --master-port, or end what holds it"};
}

Error refused_error(uint16_t port, int error) {
  if (error == EADDRINUSE) return taken_error(port, port_owner(port));
  return system_error("cannot reserve port " + std::to_string(port), error);
}

}  // namespace

Result<PortReservation> PortReservation::make(std::optional<uint16_t> port) {
  for (int i = 0; i < kTries; ++i) {
    UniqueFd socket = bind_port(port.value_or(0));
    if (!socket.is_open()) return refused_error(port.value_or(0), errno);
    const uint16_t number = port_of(socket);
    UniqueFd name = bind_name(number);
    if (name.is_open()) return PortReservation(number, socket.release(), name.release());
    if (errno != EADDRINUSE)
      return system_error("cannot reserve port " + std::to_string(number), errno);
    if (port) return taken_error(number, name_owner(number));
  }
  return Error{ErrorKind::System, "no free port could be reserved; see ip_local_port_range"};
}

PortReservation::PortReservation(PortReservation&& other) noexcept
    : port_(std::exchange(other.port_, uint16_t{0})),
      socket_(std::exchange(other.socket_, -1)),
      name_(std::exchange(other.name_, -1)) {}

PortReservation& PortReservation::operator=(PortReservation&& other) noexcept {
  if (this == &other) return *this;
  drop();
  port_ = std::exchange(other.port_, uint16_t{0});
  socket_ = std::exchange(other.socket_, -1);
  name_ = std::exchange(other.name_, -1);
  return *this;
}

PortReservation::~PortReservation() {
  drop();
}

void PortReservation::drop() {
  if (socket_ >= 0) ::close(socket_);
  if (name_ >= 0) ::close(name_);
}

}  // namespace cpprun
