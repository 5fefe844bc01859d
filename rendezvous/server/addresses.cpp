#include "rendezvous/server/addresses.hpp"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstring>
#include <optional>

#include "common/machine/port_owner.hpp"

namespace cpprun {
namespace {

struct SocketAddress {
  sockaddr_storage address{};
  socklen_t size = 0;
};

sockaddr* as_sockaddr(SocketAddress& place) {
  return reinterpret_cast<sockaddr*>(&place.address);
}

void set_port(SocketAddress& place, uint16_t port) {
  if (place.address.ss_family == AF_INET6) {
    reinterpret_cast<sockaddr_in6&>(place.address).sin6_port = htons(port);
  } else {
    reinterpret_cast<sockaddr_in&>(place.address).sin_port = htons(port);
  }
}

std::optional<SocketAddress> numeric_place(const std::string& host) {
  SocketAddress place;
  auto& v4 = reinterpret_cast<sockaddr_in&>(place.address);
  auto& v6 = reinterpret_cast<sockaddr_in6&>(place.address);
  if (::inet_pton(AF_INET, host.c_str(), &v4.sin_addr) == 1) {
    place.address.ss_family = AF_INET;
    place.size = sizeof v4;
    return place;
  }
  if (::inet_pton(AF_INET6, host.c_str(), &v6.sin6_addr) == 1) {
    place.address.ss_family = AF_INET6;
    place.size = sizeof v6;
    return place;
  }
  return std::nullopt;
}

std::vector<SocketAddress> looked_up(const std::string& host, std::string& why) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE;
  addrinfo* found = nullptr;
  int error = ::getaddrinfo(host.c_str(), nullptr, &hints, &found);
  if (error != 0) {
    why = ::gai_strerror(error);
    return {};
  }
  SocketAddress place;
  place.size = found->ai_addrlen;
  std::memcpy(&place.address, found->ai_addr, found->ai_addrlen);
  ::freeaddrinfo(found);
  return {place};
}

// Returns -1 and sets `why` on an error.
int listen_at(SocketAddress place, uint16_t port, bool is_dual, std::string& why) {
  int fd = ::socket(place.address.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd < 0) {
    why = std::strerror(errno);
    return -1;
  }
  set_port(place, port);
  int on = 1;
  int v6_only = is_dual ? 0 : 1;
  ::setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  if (place.address.ss_family == AF_INET6) {
    ::setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &v6_only, sizeof v6_only);
  }
  if (::bind(fd, as_sockaddr(place), place.size) == 0 && ::listen(fd, INT_MAX) == 0) return fd;
  why = std::strerror(errno);
  ::close(fd);
  return -1;
}

Error cannot_listen(const Endpoint& endpoint, const std::string& why) {
  const std::string port = std::to_string(endpoint.port);
  const std::string holder = port_owner(endpoint.port);
  const std::string user = holder.empty() ? "find its user with: ss -ltnp 'sport = :" + port + "'"
                                          : "end its user: " + holder;
  return Error{ErrorKind::System,
               "The server socket has failed to listen on any local network address. port: " +
                   port + ", host: " + (endpoint.host.empty() ? "(all)" : endpoint.host) +
                   ", reason: " + why + "\nchoose another port (0 takes a free one), or " + user};
}

}  // namespace

std::string numeric_name(const sockaddr_storage& address) {
  char text[INET6_ADDRSTRLEN] = "";
  if (address.ss_family == AF_INET) {
    auto& v4 = reinterpret_cast<const sockaddr_in&>(address);
    ::inet_ntop(AF_INET, &v4.sin_addr, text, sizeof text);
  } else if (address.ss_family == AF_INET6) {
    auto& v6 = reinterpret_cast<const sockaddr_in6&>(address);
    bool is_mapped = IN6_IS_ADDR_V4MAPPED(&v6.sin6_addr);
    const void* bytes = is_mapped ? static_cast<const void*>(v6.sin6_addr.s6_addr + 12)
                                  : static_cast<const void*>(&v6.sin6_addr);
    ::inet_ntop(is_mapped ? AF_INET : AF_INET6, bytes, text, sizeof text);
  }
  return text;
}

std::string local_name(int fd) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  if (::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) != 0) return "";
  return numeric_name(address);
}

uint16_t local_port(int fd) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  if (::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) != 0) return 0;
  return ntohs(address.ss_family == AF_INET6 ? reinterpret_cast<sockaddr_in6&>(address).sin6_port
                                             : reinterpret_cast<sockaddr_in&>(address).sin_port);
}

Result<std::vector<int>> open_listeners(const Endpoint& endpoint) {
  std::string why;
  std::vector<SocketAddress> places;
  bool wants_all = false;  // listen at each address; false: at the first that works
  if (endpoint.host.empty()) {
    places = {*numeric_place("::"), *numeric_place("0.0.0.0")};
  } else if (endpoint.host == "localhost") {
    places = {*numeric_place("127.0.0.1"), *numeric_place("::1")};
    wants_all = true;
  } else if (std::optional<SocketAddress> place = numeric_place(endpoint.host)) {
    places = {*place};
  } else {
    places = looked_up(endpoint.host, why);
  }
  std::vector<int> opened;
  bool is_dual = endpoint.host.empty() || endpoint.host == "::";
  uint16_t port = endpoint.port;
  for (const SocketAddress& place : places) {
    if (!opened.empty() && !wants_all) break;
    int fd = listen_at(place, port, is_dual, why);
    if (fd < 0) {
      // If the first address is in use, the port belongs to another process.
      if (wants_all && opened.empty()) break;
      continue;
    }
    opened.push_back(fd);
    port = local_port(fd);
  }
  if (opened.empty()) return cannot_listen(endpoint, why);
  return opened;
}

}  // namespace cpprun
