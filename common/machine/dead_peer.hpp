// detect_dead_peer(): the kernel ends a TCP connection whose peer no longer answers. Alone in this
// header, so that the store client of training programs links nothing for it.
#pragma once

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <chrono>
#include <cstdint>

#include "common/limits/tcp.hpp"

namespace cpprun {

// The kernel ends the TCP connection of `fd` about a minute after its peer has stopped to answer or
// to read (common/limits/tcp.hpp). On a listening socket: accepted sockets inherit it. A kernel
// that refuses an option keeps its own, longer times.
inline void detect_dead_peer(int fd) {
  using std::chrono::duration_cast;
  using std::chrono::milliseconds;
  using std::chrono::seconds;
  const auto set = [fd](int level, int option, int64_t value) {
    const int number = static_cast<int>(value);
    ::setsockopt(fd, level, option, &number, sizeof number);
  };
  set(SOL_SOCKET, SO_KEEPALIVE, 1);
  set(IPPROTO_TCP, TCP_KEEPIDLE, duration_cast<seconds>(limits::kKeepAliveIdle).count());
  set(IPPROTO_TCP, TCP_KEEPINTVL, duration_cast<seconds>(limits::kKeepAliveInterval).count());
  set(IPPROTO_TCP, TCP_KEEPCNT, limits::kKeepAliveProbes);
  set(IPPROTO_TCP, TCP_USER_TIMEOUT, duration_cast<milliseconds>(limits::kTcpUserTimeout).count());
}

}  // namespace cpprun
