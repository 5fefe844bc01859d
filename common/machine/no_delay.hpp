// send_without_delay(): small TCP messages leave at once. Alone in this header, so that the store
// client of training programs links nothing for it.
#pragma once

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

namespace cpprun {

// Otherwise the last piece of a message waits for an acknowledgement of the one before, which the
// peer delays by 40 ms. On a listening socket: accepted sockets inherit it.
inline void send_without_delay(int fd) {
  const int on = 1;
  ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

}  // namespace cpprun
