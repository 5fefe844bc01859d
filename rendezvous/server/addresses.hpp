// Socket addresses: numeric names, and where to listen. System calls only, no Asio. Resolves only
// our own listening address, once; never a peer's.
#pragma once

#include <sys/socket.h>

#include <cstdint>
#include <string>
#include <vector>

#include "common/endpoint.hpp"
#include "common/result.hpp"

namespace cpprun {

// "10.0.0.1", "::1"; a mapped IPv4 address is written as IPv4.
std::string numeric_name(const sockaddr_storage& address);
std::string local_name(int fd);
uint16_t local_port(int fd);

// Opens sockets that listen at `endpoint`, all on one port: one, or two for "localhost" (IPv4 and
// IPv6). An empty host means all interfaces. Non-blocking, close-on-exec, no delay (accepted
// sockets inherit that), longest backlog. The error text is torch's, because callers match it.
Result<std::vector<int>> open_listeners(const Endpoint& endpoint);

}  // namespace cpprun
