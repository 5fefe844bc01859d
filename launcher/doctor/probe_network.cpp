#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstring>
#include <sstream>

#include "common/limits/doctor.hpp"
#include "common/machine/own_addresses.hpp"
#include "common/machine/port_owner.hpp"
#include "launcher/doctor/probe.hpp"
#include "launcher/doctor/small_files.hpp"

namespace cpprun::doctor {
namespace {

using Clock = std::chrono::steady_clock;

struct Address {
  sockaddr_storage storage{};
  socklen_t size = 0;
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage); }
};

std::optional<Address> socket_address(const std::string& numeric, uint16_t port) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const std::string service = std::to_string(port);
  if (::getaddrinfo(numeric.c_str(), service.c_str(), &hints, &found) != 0) return std::nullopt;
  Address address;
  std::memcpy(&address.storage, found->ai_addr, found->ai_addrlen);
  address.size = found->ai_addrlen;
  ::freeaddrinfo(found);
  return address;
}

// 0, or the errno of the failed connection attempt.
int connect_within(int socket, const Address& address, Duration limit) {
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
  const std::optional<Address> address = socket_address(numeric, port);
  if (!address) return made;
  const int socket =
      ::socket(address->storage.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (socket < 0) {
    made.error = std::strerror(errno);
    return made;
  }
  const Clock::time_point start = Clock::now();
  const int error = connect_within(socket, *address, limits::kProbeConnectTimeout);
  made.took = Clock::now() - start;
  made.error = error == 0 ? "" : std::strerror(error);
  ::close(socket);
  return made;
}

// Binds like a server, with SO_REUSEADDR: a closed connection in TIME_WAIT does not count.
bool is_port_taken(const std::string& numeric, uint16_t port) {
  const std::optional<Address> address = socket_address(numeric, port);
  if (!address) return false;
  const int socket = ::socket(address->storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (socket < 0) return false;
  const int yes = 1;
  ::setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  const bool is_bound = ::bind(socket, address->get(), address->size) == 0;
  const bool is_taken =
      (!is_bound && errno == EADDRINUSE) || (is_bound && ::listen(socket, 1) != 0);
  ::close(socket);
  return is_taken;
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
      read_small_file(root + "/proc/sys/net/ipv4/ip_local_port_range").value_or("0 0"));
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
