#include "common/http/blocking_socket.hpp"

#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <string.h>

#include <algorithm>
#include <span>
#include <thread>
#include <utility>

#include "common/machine/dead_peer.hpp"

namespace cpprun {
namespace {

constexpr size_t kPieceBytes = 16 * 1024;
constexpr std::chrono::milliseconds kFullQueuePause{5};

std::span<const uint8_t> octets_of(std::string_view bytes) {
  return {reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()};
}

Error trouble() { return Error{ErrorKind::System, ::strerror(errno)}; }
Error no_answer() { return Error{ErrorKind::System, "no answer in time"}; }

}  // namespace

Status BlockingSocket::connect(const sockaddr* address, socklen_t size) {
  while (::connect(fd(), address, size) != 0) {
    if (errno == EINPROGRESS) return finish_connect();
    if (errno != EAGAIN) return trouble();
    // The queue of a local server is full, and poll() does not show when it has room.
    if (std::chrono::steady_clock::now() + kFullQueuePause >= until_) return no_answer();
    std::this_thread::sleep_for(kFullQueuePause);
  }
  return {};
}

Status BlockingSocket::finish_connect() {
  if (Status ok = wait(POLLOUT); !ok) return ok;
  int error = 0;
  socklen_t length = sizeof error;
  ::getsockopt(fd(), SOL_SOCKET, SO_ERROR, &error, &length);
  errno = error;
  return error == 0 ? Status() : trouble();
}

Status BlockingSocket::secure(std::unique_ptr<TlsStream> tls) {
  tls_ = std::move(tls);
  const auto no_tls = [](const std::string& why) {
    return Error{ErrorKind::Network, "no TLS: " + why};
  };
  for (;;) {
    const TlsStream::State state = tls_->shake_hands();
    const Status sent = send_raw(tls_->take_output());
    if (state == TlsStream::State::Failed) return no_tls(tls_->why());
    if (!sent) return no_tls(sent.error().text);
    if (state != TlsStream::State::Handshake) return {};
    Result<std::string> some = receive_some(kPieceBytes);
    if (!some) return no_tls(some.error().text);
    if (some->empty()) {
      is_ended_in_handshake_ = true;
      return no_tls("it ends the connection in the TLS handshake");
    }
    tls_->feed(octets_of(*some));
  }
}

Status BlockingSocket::send(std::string_view bytes) {
  if (!tls_) return send_raw(bytes);
  if (!tls_->write(octets_of(bytes))) return Error{ErrorKind::Network, "TLS: " + tls_->why()};
  return send_raw(tls_->take_output());
}

Status BlockingSocket::send_raw(std::string_view bytes) {
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
  while (all.size() < bytes) {
    const size_t most = bytes - all.size();
    Result<std::string> some = tls_ ? receive_decrypted(most) : receive_some(most);
    if (!some) return some;
    if (some->empty()) break;
    all += *some;
  }
  return all;
}

Result<std::string> BlockingSocket::receive_some(size_t most) {
  std::string piece(std::min(kPieceBytes, most), '\0');
  for (;;) {
    const ssize_t got = ::recv(fd(), piece.data(), piece.size(), 0);
    if (got >= 0) {
      piece.resize(static_cast<size_t>(got));
      return piece;
    }
    if (errno != EAGAIN && errno != EINTR) return trouble();
    if (Status ok = wait(POLLIN); !ok) return ok.error();
  }
}

Result<std::string> BlockingSocket::receive_decrypted(size_t most) {
  std::string piece(std::min(kPieceBytes, most), '\0');
  for (;;) {
    const size_t size = tls_->read({reinterpret_cast<uint8_t*>(piece.data()), piece.size()});
    piece.resize(size);
    if (size > 0 || tls_->state() == TlsStream::State::Ended) return piece;
    if (tls_->state() == TlsStream::State::Failed) {
      return Error{ErrorKind::Network, "TLS: " + tls_->why()};
    }
    Result<std::string> some = receive_some(kPieceBytes);
    if (!some || some->empty()) return some;
    tls_->feed(octets_of(*some));
    piece.resize(std::min(kPieceBytes, most));
  }
}

Status BlockingSocket::wait(short events) const {
  using std::chrono::duration_cast;
  using std::chrono::milliseconds;
  const auto left =
      duration_cast<milliseconds>(until_ - std::chrono::steady_clock::now()).count() + 1;
  pollfd one{fd(), events, 0};
  if (left > 0 && ::poll(&one, 1, static_cast<int>(left)) != 0) return {};
  return no_answer();
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

}  // namespace cpprun
