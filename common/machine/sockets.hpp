// Socket addresses and listening sockets. System calls only, no Asio. Resolves only our own
// listening address, once; never a peer's.
#pragma once

#include <sys/socket.h>

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/endpoint.hpp"
#include "common/machine/unique_fd.hpp"
#include "common/result.hpp"

namespace cpprun {

struct SocketAddress {
  sockaddr_storage storage{};
  socklen_t size = 0;
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage); }
};

// Empty if `host` is not numeric.
std::optional<SocketAddress> tcp_address(const std::string& host, uint16_t port);
// Of an abstract unix socket. Empty if the name is empty or too long.
std::optional<SocketAddress> abstract_address(std::string_view name);

// "10.0.0.1", "::1"; a mapped IPv4 address is written as IPv4.
std::string numeric_name(const sockaddr& address);
std::string local_name(int fd);
uint16_t local_port(int fd);

// Sockets that the functions below make are non-blocking and close-on-exec. Not open: errno has the
// reason.

// With SO_REUSEADDR, like a server: a closed connection in TIME_WAIT does not occupy the port.
// Accepted sockets inherit detect_dead_peer() (dead_peer.hpp).
UniqueFd bind_tcp(const SocketAddress& address);
// On all interfaces: one IPv6 socket that takes IPv4 too, or an IPv4 one if there is no IPv6.
UniqueFd bind_all(uint16_t port);
// `type`: SOCK_STREAM or SOCK_SEQPACKET.
UniqueFd listen_abstract(std::string_view name, int type, int backlog);
// Both ends of a stream between two threads of this process; no other process can reach it.
std::array<UniqueFd, 2> connected_pair();

// Sends one message over a local socket that keeps messages apart (SOCK_SEQPACKET), with
// `descriptors` (at most kDescriptorsPerMessage), without waiting. False: nothing was sent; errno
// has the reason.
inline constexpr size_t kDescriptorsPerMessage = 253;  // SCM_MAX_FD of the kernel
bool send_descriptors(int socket, std::string_view text, std::span<const int> descriptors);

// Opens sockets that listen at `endpoint`, all on one port: one, or two for "localhost" (IPv4 and
// IPv6). An empty host means all interfaces. No delay (accepted sockets inherit that), longest
// backlog. The error text is torch's, because callers match it.
Result<std::vector<int>> open_listeners(const Endpoint& endpoint);

}  // namespace cpprun
