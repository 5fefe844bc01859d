#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstring>
#include <sstream>

#include "common/limits/admin.hpp"
#include "common/machine/files.hpp"
#include "common/machine/own_addresses.hpp"
#include "common/machine/port_owner.hpp"
#include "common/machine/sockets.hpp"
#include "launcher/doctor/probe.hpp"

namespace cpprun::doctor {
namespace {

using Clock = std::chrono::steady_clock;

// 0, or the errno of the failed connection attempt.
int connect_within(int socket, const SocketAddress& address, Duration limit) {
  if (::connect(socket, address.get(), address.size) == 0) return 0;
  if (errno != EINPROGRESS) return errno;
  pollfd asked{socket, POLLOUT, 0};
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(limit).count();
  if (::poll(&asked, 1, static_cast<int>(left)) <= 0) return ETIMEDOUT;
  int error = 0;
  socklen_t size = sizeof error;
  ::getsockopt(socket, SOL_SOCKET, SO_ERROR, &error, &size);
  return error;
}

AddressAttempt attempt(const std::string& numeric, uint16_t port) {
  AddressAttempt made{numeric, "no address", {}};
  const std::optional<SocketAddress> address = tcp_address(numeric, port);
  if (!address) return made;
  const UniqueFd socket(
      ::socket(address->storage.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!socket.is_open()) {
    made.error = std::strerror(errno);
    return made;
  }
  const Clock::time_point start = Clock::now();
  const int error = connect_within(socket.get(), *address, limits::kProbeConnectTimeout);
  made.took = Clock::now() - start;
  made.error = error == 0 ? "" : std::strerror(error);
  return made;
}

bool is_port_taken(const std::string& numeric, uint16_t port) {
  const std::optional<SocketAddress> address = tcp_address(numeric, port);
  if (!address) return false;
  const UniqueFd socket = bind_tcp(*address);
  return socket.is_open() ? ::listen(socket.get(), 1) != 0 : errno == EADDRINUSE;
}

}  // namespace

NameFacts probe_name() {
  NameFacts found;
  char name[256] = {};
  ::gethostname(name, sizeof name - 1);
  found.host_name = name;
  const Clock::time_point start = Clock::now();
  if (const Result<ResolvedHost> host = resolve_host(found.host_name)) {
    found.addresses = host->addresses;
  }
  found.took = Clock::now() - start;
  return found;
}

EndpointFacts probe_endpoint(const Endpoint& endpoint, const std::string& root) {
  EndpointFacts found;
  found.host = endpoint.host;
  found.port = endpoint.port;
  std::istringstream range(
      read_file(root + "/proc/sys/net/ipv4/ip_local_port_range").value_or("0 0"));
  range >> found.ephemeral_first >> found.ephemeral_last;
  Result<ResolvedHost> host = resolve_host(endpoint.host);
  if (!host) {
    found.resolve_error = host.error().text;
    return found;
  }
  found.own_address = first_own_address(host->addresses);
  if (!found.own_address.empty()) {
    found.is_port_taken = is_port_taken(found.own_address, endpoint.port);
    if (found.is_port_taken) found.port_owner = port_owner(endpoint.port);
    return found;
  }
  if (host->addresses.size() > limits::kProbeAddresses) {
    host->addresses.resize(limits::kProbeAddresses);
  }
  for (const std::string& address : host->addresses) {
    found.attempts.push_back(attempt(address, endpoint.port));
    if (found.attempts.back().error.empty()) break;
  }
  return found;
}

}  // namespace cpprun::doctor
