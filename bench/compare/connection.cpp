#include "bench/compare/connection.hpp"

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "rendezvous/protocol/tcpstore/tcpstore_encode.hpp"

namespace cpprun::bench {
namespace {

constexpr timeval kPatience{30, 0};
std::array<char, 1 << 18> sink;

}  // namespace

void die(const char* what) {
  std::fprintf(stderr, "compare_load: ");
  std::perror(what);
  std::exit(1);
}

Connection::Connection(uint16_t port) : fd_(socket(AF_INET, SOCK_STREAM, 0)) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (connect(fd_, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) die("connect");
  const int one = 1;
  setsockopt(fd_, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
  setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &kPatience, sizeof kPatience);
  setsockopt(fd_, SOL_SOCKET, SO_SNDTIMEO, &kPatience, sizeof kPatience);
  std::string hello;
  tcpstore::put_validate(hello);
  send(hello);
}

Connection::~Connection() {
  if (fd_ >= 0) close(fd_);
}

void Connection::send(std::string_view bytes) const {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent <= 0) die("send");
    bytes.remove_prefix(static_cast<size_t>(sent));
  }
}

void Connection::skip(size_t bytes) const {
  while (bytes > 0) {
    const ssize_t got = recv(fd_, sink.data(), std::min(bytes, sink.size()), 0);
    if (got <= 0) die("no reply from the store");
    bytes -= static_cast<size_t>(got);
  }
}

char Connection::take_byte() const {
  skip(1);
  return sink[0];
}

size_t Connection::take() const {
  const ssize_t got = recv(fd_, sink.data(), sink.size(), MSG_DONTWAIT);
  if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return 0;
  if (got <= 0) die("the store ended a connection");
  return static_cast<size_t>(got);
}

}  // namespace cpprun::bench
