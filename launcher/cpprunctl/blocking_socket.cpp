#include "launcher/cpprunctl/blocking_socket.hpp"

#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <string.h>

#include <algorithm>

#include "common/machine/dead_peer.hpp"

namespace cpprun::ctl {
namespace {

Error trouble() { return Error{ErrorKind::System, ::strerror(errno)}; }

}  // namespace

Status BlockingSocket::connect(const sockaddr* address, socklen_t size) {
  if (::connect(fd(), address, size) == 0) return {};
  if (errno != EINPROGRESS && errno != EAGAIN) return trouble();
  if (Status ok = wait(POLLOUT); !ok) return ok;
  int error = 0;
  socklen_t length = sizeof error;
  ::getsockopt(fd(), SOL_SOCKET, SO_ERROR, &error, &length);
  errno = error;
  return error == 0 ? Status() : trouble();
}

Status BlockingSocket::send(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(fd(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent > 0) {
      bytes.remove_prefix(static_cast<size_t>(sent));
    } else if (errno != EAGAIN && errno != EINTR) {
      return trouble();
    } else if (Status ok = wait(POLLOUT); !ok) {
      return ok;
    }
  }
  return {};
}

Result<std::string> BlockingSocket::receive(size_t bytes) {
  std::string all;
  char piece[16 * 1024];
  while (all.size() < bytes) {
    const ssize_t got = ::recv(fd(), piece, std::min(sizeof piece, bytes - all.size()), 0);
    if (got > 0) {
      all.append(piece, static_cast<size_t>(got));
    } else if (got == 0) {
      break;
    } else if (errno != EAGAIN && errno != EINTR) {
      return trouble();
    } else if (Status ok = wait(POLLIN); !ok) {
      return ok.error();
    }
  }
  return all;
}

Status BlockingSocket::wait(short events) const {
  using std::chrono::duration_cast;
  using std::chrono::milliseconds;
  const auto left =
      duration_cast<milliseconds>(until_ - std::chrono::steady_clock::now()).count() + 1;
  pollfd one{fd(), events, 0};
  if (left > 0 && ::poll(&one, 1, static_cast<int>(left)) != 0) return {};
  return Error{ErrorKind::System, "no answer in time"};
}

Result<std::unique_ptr<BlockingSocket>> dial(const Endpoint& endpoint, Duration limit) {
  addrinfo wish{};
  wish.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const std::string port = std::to_string(endpoint.port);
  if (const int no = ::getaddrinfo(endpoint.host.c_str(), port.c_str(), &wish, &found); no != 0) {
    return Error{ErrorKind::System, to_string(endpoint) + ": " + ::gai_strerror(no)};
  }
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> all(found, ::freeaddrinfo);
  Status last = Error{ErrorKind::System, "it has no address"};
  for (const addrinfo* a = found; a != nullptr; a = a->ai_next) {
    auto line = std::make_unique<BlockingSocket>(
        ::socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), limit);
    detect_dead_peer(line->fd());
    last = line->connect(a->ai_addr, a->ai_addrlen);
    if (last) return line;
  }
  return Error{ErrorKind::System, to_string(endpoint) + ": " + last.error().text};
}

}  // namespace cpprun::ctl
