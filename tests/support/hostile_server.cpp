#include "tests/support/hostile_server.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/check.hpp"

namespace cpprun {
namespace {

constexpr size_t kHelloBytes = 6;  // VALIDATE, GETNUMKEYS

bool send_bytes(int fd, const std::string& bytes) {
  if (bytes.empty()) return true;
  return ::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(bytes.size());
}

}  // namespace

HostileServer::HostileServer(HostileScript script) : script_(std::move(script)) {
  listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* name = reinterpret_cast<sockaddr*>(&address);
  CPPRUN_CHECK(::bind(listener_, name, size) == 0 && ::listen(listener_, 16) == 0);
  CPPRUN_CHECK(::getsockname(listener_, name, &size) == 0);
  port_ = ntohs(address.sin_port);
  thread_ = std::thread([this] { serve(); });
}

HostileServer::~HostileServer() {
  is_over_ = true;
  ::shutdown(listener_, SHUT_RDWR);  // ends a blocked accept
  if (int fd = client_; fd >= 0) ::shutdown(fd, SHUT_RDWR);
  thread_.join();
  ::close(listener_);
}

void HostileServer::serve() {
  while (!is_over_) {
    int fd = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    if (fd < 0) continue;
    client_ = fd;
    ++clients_;
    if (!is_over_) serve_one(fd);
    client_ = -1;
    ::close(fd);
  }
}

void HostileServer::serve_one(int fd) {
  char bytes[4096];
  if (::recv(fd, bytes, kHelloBytes, MSG_WAITALL) != kHelloBytes) return;
  if (!send_bytes(fd, script_.greeting)) return;
  if (::recv(fd, bytes, sizeof bytes, 0) <= 0) return;
  do {
    if (!send_bytes(fd, script_.answer)) return;
  } while (script_.is_trickling && !is_over_);
  if (script_.hangs_up) return;
  while (::recv(fd, bytes, sizeof bytes, 0) > 0) continue;
}

}  // namespace cpprun
