#include "common/machine/sockets.hpp"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/un.h>

#include <cerrno>
#include <climits>
#include <cstddef>
#include <cstring>

#include "common/check.hpp"
#include "common/machine/dead_peer.hpp"
#include "common/machine/no_delay.hpp"
#include "common/machine/port_owner.hpp"

namespace cpprun {
namespace {

constexpr int kSocketFlags = SOCK_NONBLOCK | SOCK_CLOEXEC;

// `flags`: of getaddrinfo(). Sets `why` if there is no address.
std::optional<SocketAddress> look_up(const std::string& host, uint16_t port, int flags,
                                     std::string& why) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV | flags;
  addrinfo* found = nullptr;
  const int error = ::getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found);
  if (error != 0) {
    why = ::gai_strerror(error);
    return std::nullopt;
  }
  SocketAddress address;
  address.size = found->ai_addrlen;
  std::memcpy(&address.storage, found->ai_addr, found->ai_addrlen);
  ::freeaddrinfo(found);
  return address;
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

std::optional<SocketAddress> tcp_address(const std::string& host, uint16_t port) {
  std::string ignored;
  return look_up(host, port, AI_NUMERICHOST, ignored);
}

std::optional<SocketAddress> abstract_address(std::string_view name) {
  SocketAddress address;
  auto& place = reinterpret_cast<sockaddr_un&>(address.storage);
  if (name.empty() || name.size() >= sizeof place.sun_path) return std::nullopt;
  place.sun_family = AF_UNIX;
  std::memcpy(place.sun_path + 1, name.data(), name.size());  // a leading zero byte: abstract
  address.size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  return address;
}

std::string numeric_name(const sockaddr& address) {
  char text[INET6_ADDRSTRLEN] = "";
  if (address.sa_family == AF_INET) {
    auto& v4 = reinterpret_cast<const sockaddr_in&>(address);
    ::inet_ntop(AF_INET, &v4.sin_addr, text, sizeof text);
  } else if (address.sa_family == AF_INET6) {
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
  return numeric_name(reinterpret_cast<const sockaddr&>(address));
}

uint16_t local_port(int fd) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  if (::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) != 0) return 0;
  return ntohs(address.ss_family == AF_INET6 ? reinterpret_cast<sockaddr_in6&>(address).sin6_port
                                             : reinterpret_cast<sockaddr_in&>(address).sin_port);
}

UniqueFd bind_tcp(const SocketAddress& address) {
  UniqueFd socket(::socket(address.storage.ss_family, SOCK_STREAM | kSocketFlags, 0));
  if (!socket.is_open()) return socket;
  const int on = 1, off = 0;
  ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (address.storage.ss_family == AF_INET6) {
    ::setsockopt(socket.get(), IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
  }
  detect_dead_peer(socket.get());
  if (::bind(socket.get(), address.get(), address.size) == 0) return socket;
  return UniqueFd();
}

UniqueFd bind_all(uint16_t port) {
  for (const char* host : {"::", "0.0.0.0"}) {
    const std::optional<SocketAddress> address = tcp_address(host, port);
    if (!address) continue;
    UniqueFd socket = bind_tcp(*address);
    const bool has_no_ipv6 = errno == EADDRNOTAVAIL || errno == EAFNOSUPPORT;
    if (socket.is_open() || !has_no_ipv6) return socket;
  }
  return UniqueFd();
}

UniqueFd listen_abstract(std::string_view name, int type, int backlog) {
  UniqueFd socket(::socket(AF_UNIX, type | kSocketFlags, 0));
  if (!socket.is_open()) return socket;
  const std::optional<SocketAddress> address = abstract_address(name);
  if (!address) {
    errno = ENAMETOOLONG;
    return UniqueFd();
  }
  const bool is_listening = ::bind(socket.get(), address->get(), address->size) == 0 &&
                            ::listen(socket.get(), backlog) == 0;
  return is_listening ? std::move(socket) : UniqueFd();
}

std::array<UniqueFd, 2> connected_pair() {
  int ends[2] = {-1, -1};
  if (::socketpair(AF_UNIX, SOCK_STREAM | kSocketFlags, 0, ends) != 0) return {};
  return {UniqueFd(ends[0]), UniqueFd(ends[1])};
}

bool send_descriptors(int socket, std::string_view text, std::span<const int> descriptors) {
  CPPRUN_CHECK(descriptors.size() <= kDescriptorsPerMessage);
  iovec body{const_cast<char*>(text.data()), text.size()};
  alignas(cmsghdr) char control[CMSG_SPACE(kDescriptorsPerMessage * sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &body;
  message.msg_iovlen = 1;
  if (!descriptors.empty()) {
    message.msg_control = control;
    message.msg_controllen = CMSG_SPACE(descriptors.size_bytes());
    cmsghdr* head = CMSG_FIRSTHDR(&message);
    head->cmsg_level = SOL_SOCKET;
    head->cmsg_type = SCM_RIGHTS;
    head->cmsg_len = CMSG_LEN(descriptors.size_bytes());
    std::memcpy(CMSG_DATA(head), descriptors.data(), descriptors.size_bytes());
  }
  const auto sent = ::sendmsg(socket, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
  return sent == static_cast<ssize_t>(text.size());
}

Result<std::vector<int>> open_listeners(const Endpoint& endpoint) {
  std::vector<std::string> hosts{endpoint.host};
  if (endpoint.host.empty()) hosts = {"::", "0.0.0.0"};
  // Listen at each address; false: at the first that works.
  const bool wants_all = endpoint.host == "localhost";
  if (wants_all) hosts = {"127.0.0.1", "::1"};
  std::string why;
  std::vector<int> opened;
  uint16_t port = endpoint.port;
  for (const std::string& host : hosts) {
    const std::optional<SocketAddress> address = look_up(host, port, 0, why);
    UniqueFd socket = address ? bind_tcp(*address) : UniqueFd();
    if (socket.is_open()) send_without_delay(socket.get());
    if (socket.is_open() && ::listen(socket.get(), INT_MAX) == 0) {
      opened.push_back(socket.release());
      if (!wants_all) break;
      port = local_port(opened.back());
      continue;
    }
    if (address) why = std::strerror(errno);
    // If the first address is in use, the port belongs to another process.
    if (wants_all && opened.empty()) break;
  }
  if (opened.empty()) return cannot_listen(endpoint, why);
  return opened;
}

}  // namespace cpprun
