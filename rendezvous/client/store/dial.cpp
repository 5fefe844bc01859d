#include "rendezvous/client/store/dial.hpp"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>

#include "common/limits/store.hpp"

namespace cpprun::worker {
namespace {

using Addresses = std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)>;

Error unreachable(const std::string& where, int number) {
  return Error{ErrorKind::Network,
               where + ": " + std::strerror(number) + " (errno " + std::to_string(number) + ")"};
}

Result<Addresses> look_up(const Endpoint& endpoint) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV;
  addrinfo* found = nullptr;
  int failed =
      ::getaddrinfo(endpoint.host.c_str(), std::to_string(endpoint.port).c_str(), &hints, &found);
  if (failed == 0) return Addresses(found, &::freeaddrinfo);
  return Error{ErrorKind::Network, "looking up '" + endpoint.host + "': " + ::gai_strerror(failed)};
}

std::string text_of(const addrinfo& address) {
  char host[NI_MAXHOST] = "?";
  char port[NI_MAXSERV] = "?";
  ::getnameinfo(address.ai_addr, address.ai_addrlen, host, sizeof host, port, sizeof port,
                NI_NUMERICHOST | NI_NUMERICSERV);
  bool is_v6 = address.ai_family == AF_INET6;
  return (is_v6 ? "[" + std::string(host) + "]:" : std::string(host) + ":") + port;
}

Result<UniqueFd> dial_one(const addrinfo& address, Deadline deadline) {
  const int type = SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK;
  UniqueFd fd(::socket(address.ai_family, type, 0));
  if (!fd.is_open()) return unreachable(text_of(address), errno);
  int on = 1;
  ::setsockopt(fd.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  if (::connect(fd.get(), address.ai_addr, address.ai_addrlen) == 0) return fd;
  // An interrupted connect continues in the background.
  if (errno != EINPROGRESS && errno != EINTR) return unreachable(text_of(address), errno);
  if (!poll_until(fd.get(), POLLOUT, deadline)) return unreachable(text_of(address), ETIMEDOUT);
  int refused = 0;
  socklen_t size = sizeof refused;
  ::getsockopt(fd.get(), SOL_SOCKET, SO_ERROR, &refused, &size);
  if (refused != 0) return unreachable(text_of(address), refused);
  return fd;
}

}  // namespace

Result<UniqueFd> dial(const Endpoint& endpoint, Deadline deadline) {
  Result<Addresses> addresses = look_up(endpoint);
  if (!addresses) return addresses.error();
  Result<UniqueFd> last = Error{ErrorKind::Network, "'" + endpoint.host + "' has no address"};
  for (const addrinfo* one = addresses->get(); one != nullptr; one = one->ai_next) {
    last = dial_one(*one, std::min(deadline, after(limits::kStoreConnectTimeout)));
    if (last) break;
  }
  return last;
}

}  // namespace cpprun::worker
