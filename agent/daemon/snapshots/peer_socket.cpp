#include "agent/daemon/snapshots/peer_socket.hpp"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <utility>

#include "common/check.hpp"
#include "common/limits/tls.hpp"
#include "common/machine/clock.hpp"
#include "common/machine/dead_peer.hpp"
#include "common/machine/no_delay.hpp"
#include "rendezvous/protocol/transfer/snapshot_protocol.hpp"

namespace cpprun {
namespace {

Error trouble(const std::string& what) { return Error{ErrorKind::Network, what}; }
Error trouble_of_errno() {
  std::array<char, 128> text{};
  return trouble(::strerror_r(errno, text.data(), text.size()));
}

int to_ms(Duration duration) {
  using std::chrono::milliseconds;
  const auto ms = std::chrono::ceil<milliseconds>(std::max(duration, Duration{})).count();
  return static_cast<int>(std::min<int64_t>(ms, 1'000'000'000));
}

bool is_later() { return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR; }

// Starts a non-blocking connect; the result is not open after an immediate failure.
UniqueFd begin_connect(const addrinfo& address) {
  UniqueFd socket(
      ::socket(address.ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, address.ai_protocol));
  if (!socket.is_open()) return socket;
  detect_dead_peer(socket.get());
  const int done = ::connect(socket.get(), address.ai_addr, address.ai_addrlen);
  if (done < 0 && errno != EINPROGRESS) return UniqueFd();
  return socket;
}

std::span<const uint8_t> octets_of(std::string_view bytes) {
  return {reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()};
}

// What fits into the processor's caches with its copies.
constexpr size_t kEncryptedAtOnce = 64 * 1024;
// The most that TLS 1.3 adds to a record (RFC 8446, 5.2).
constexpr size_t kRecordOverhead = 256;
constexpr size_t kRecordsAtOnce = kEncryptedAtOnce / limits::kTlsRecordBytes;

}  // namespace

CancelToken::CancelToken() : event_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  CPPRUN_CHECK(event_.is_open());
}

void CancelToken::stop() {
  const uint64_t one = 1;
  CPPRUN_CHECK(::write(event_.get(), &one, sizeof one) == sizeof one);
}

bool CancelToken::wait(Duration limit) const {
  pollfd event{event_.get(), POLLIN, 0};
  return ::poll(&event, 1, to_ms(limit)) == 1;
}

PeerSocket::PeerSocket(UniqueFd socket, std::shared_ptr<const CancelToken> cancel_token)
    : socket_(std::move(socket)), cancel_token_(std::move(cancel_token)) {
  send_without_delay(socket_.get());
}

Result<PeerSocket> PeerSocket::connect(const std::string& host, uint16_t port, Duration limit,
                                       std::shared_ptr<const CancelToken> cancel_token,
                                       const JobTls* tls) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int code = ::getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found);
  if (code != 0) return trouble(::gai_strerror(code));
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> all(found, ::freeaddrinfo);
  Error last = trouble("it has no address");
  for (const addrinfo* address = found; address != nullptr; address = address->ai_next) {
    UniqueFd socket = begin_connect(*address);
    last = trouble_of_errno();
    if (!socket.is_open()) continue;
    const int number = socket.get();
    PeerSocket made(std::move(socket), cancel_token);
    if (Status ready = made.wait_for(POLLOUT, limit); !ready) {
      last = ready.error();
      continue;
    }
    int error = 0;
    socklen_t size = sizeof error;
    ::getsockopt(number, SOL_SOCKET, SO_ERROR, &error, &size);
    errno = error;
    last = trouble_of_errno();
    if (error != 0) continue;
    if (tls == nullptr) return made;
    Status secured = made.secure(tls->connect(TlsRole::Agent), limit);
    if (secured) return made;
    last = secured.error();
  }
  return last;
}

Status PeerSocket::wait_for(short events, Duration limit) const {
  std::array<pollfd, 2> both{
      {{socket_.get(), events, 0}, {cancel_token_->descriptor(), POLLIN, 0}}};
  const Instant until = boot_now() + limit;
  for (;;) {
    const int ready = ::poll(both.data(), both.size(), to_ms(until - boot_now()));
    if (both[1].revents != 0) return trouble("it was stopped");
    if (ready > 0) return {};
    if (ready < 0 && errno != EINTR) return trouble_of_errno();
    if (boot_now() >= until) {
      return trouble("nothing came for " + std::to_string(to_ms(limit) / 1000) + " s");
    }
  }
}

Status PeerSocket::secure(std::unique_ptr<TlsStream> tls, Duration limit) {
  tls_ = std::move(tls);
  const Instant until = boot_now() + limit;
  std::array<std::byte, limits::kTlsRecordBytes> piece;
  for (;;) {
    const TlsStream::State state = tls_->shake_hands();
    const Status sent = send_raw(tls_->take_output(), until - boot_now());
    if (state == TlsStream::State::Failed) return trouble("no TLS: " + tls_->why());
    if (!sent) return sent;
    if (state != TlsStream::State::Handshake) return {};
    Result<size_t> size = receive_raw(piece, until - boot_now());
    if (!size) return trouble("no TLS: " + size.error().text);
    tls_->feed(octets_of({reinterpret_cast<const char*>(piece.data()), *size}));
  }
}

Status PeerSocket::send(std::string_view bytes, Duration limit) {
  return tls_ ? send_encrypted(bytes, limit) : send_raw(bytes, limit);
}

Status PeerSocket::send_encrypted(std::string_view bytes, Duration limit) {
  while (!bytes.empty()) {
    const std::string_view some = bytes.substr(0, kEncryptedAtOnce);
    if (!tls_->write(octets_of(some))) return trouble("TLS: " + tls_->why());
    bytes.remove_prefix(some.size());
    std::array<uint8_t, kEncryptedAtOnce + kRecordsAtOnce * kRecordOverhead> piece;
    while (const size_t size = tls_->take_output(piece)) {
      const std::string_view encrypted(reinterpret_cast<const char*>(piece.data()), size);
      if (Status sent = send_raw(encrypted, limit); !sent) return sent;
    }
  }
  return {};
}

Status PeerSocket::send_raw(std::string_view bytes, Duration limit) {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent > 0) {
      bytes.remove_prefix(static_cast<size_t>(sent));
      continue;
    }
    if (sent < 0 && !is_later()) return trouble_of_errno();
    if (Status ready = wait_for(POLLOUT, limit); !ready) return ready;
  }
  return {};
}

Status PeerSocket::send_file_encrypted(int file, uint64_t bytes, Duration limit) {
  std::string block(std::min<uint64_t>(bytes, kEncryptedAtOnce), '\0');
  while (bytes > 0) {
    const auto most = static_cast<size_t>(std::min<uint64_t>(bytes, block.size()));
    const ssize_t got = ::read(file, block.data(), most);
    if (got == 0) return trouble("the file has become shorter");
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return trouble_of_errno();
    const auto size = static_cast<size_t>(got);
    if (Status sent = send_encrypted({block.data(), size}, limit); !sent) return sent;
    bytes -= size;
  }
  return {};
}

Status PeerSocket::send_file(int file, uint64_t bytes, Duration limit) {
  if (tls_) return send_file_encrypted(file, bytes, limit);
  constexpr uint64_t kBlockBytes = 4 << 20;  // small enough to notice a stop soon
  while (bytes > 0) {
    if (Status ready = wait_for(POLLOUT, limit); !ready) return ready;
    const auto most = static_cast<size_t>(std::min(bytes, kBlockBytes));
    const ssize_t sent = ::sendfile(socket_.get(), file, nullptr, most);
    if (sent == 0) return trouble("the file has become shorter");
    if (sent < 0 && !is_later()) return trouble_of_errno();
    if (sent > 0) bytes -= static_cast<uint64_t>(sent);
  }
  return {};
}

Result<size_t> PeerSocket::receive(std::span<std::byte> into, Duration limit) {
  if (!unread_.empty()) {
    const size_t size = std::min(unread_.size(), into.size());
    ::memcpy(into.data(), unread_.data(), size);
    unread_.erase(0, size);
    return size;
  }
  return tls_ ? receive_encrypted(into, limit) : receive_raw(into, limit);
}

Result<size_t> PeerSocket::receive_encrypted(std::span<std::byte> into, Duration limit) {
  std::array<std::byte, 4 * limits::kTlsRecordBytes> piece;
  for (size_t filled = 0;;) {
    const std::span<std::byte> room = into.subspan(filled);
    const size_t size = tls_->read({reinterpret_cast<uint8_t*>(room.data()), room.size()});
    filled += size;
    if (size > 0 && filled < into.size()) continue;
    if (filled > 0) return filled;
    if (tls_->state() == TlsStream::State::Failed) return trouble("TLS: " + tls_->why());
    if (tls_->state() == TlsStream::State::Ended) return trouble("the connection was closed");
    Result<size_t> got = receive_raw(piece, limit);
    if (!got) return got;
    tls_->feed(octets_of({reinterpret_cast<const char*>(piece.data()), *got}));
  }
}

Result<size_t> PeerSocket::receive_raw(std::span<std::byte> into, Duration limit) {
  for (;;) {
    const ssize_t size = ::recv(socket_.get(), into.data(), into.size(), 0);
    if (size > 0) return static_cast<size_t>(size);
    if (size == 0) return trouble("the connection was closed");
    if (!is_later()) return trouble_of_errno();
    if (Status ready = wait_for(POLLIN, limit); !ready) return ready.error();
  }
}

Result<std::string> PeerSocket::receive_line(Duration limit) {
  const Instant until = boot_now() + limit;
  std::string line;
  for (;;) {
    std::array<std::byte, snapshot_protocol::kLineBytes> some{};
    Result<size_t> size = receive(some, until - boot_now());
    if (!size) return size.error();
    line.append(reinterpret_cast<const char*>(some.data()), *size);
    const size_t end = line.find('\n');
    if (end != std::string::npos) {
      unread_ = line.substr(end + 1) + unread_;
      line.resize(end);
      return line;
    }
    if (line.size() >= snapshot_protocol::kLineBytes) return trouble("its words have no end");
  }
}

Result<uint64_t> PeerSocket::ask(std::string_view request, Duration limit) {
  using snapshot_protocol::Answer;
  if (Status sent = send(request, limit); !sent) return sent.error();
  const Result<std::string> line = receive_line(limit);
  if (!line) return line.error();
  const Result<Answer> answer = snapshot_protocol::decode_answer(*line);
  if (!answer) return answer.error();
  switch (answer->kind) {
    case Answer::Kind::Secret: return Error{ErrorKind::Network, answer->why};
    case Answer::Kind::Busy: return Error{ErrorKind::Timeout, answer->why};
    case Answer::Kind::No: return Error{ErrorKind::Refused, answer->why};
    case Answer::Kind::Bytes: break;
  }
  return answer->bytes;
}

}  // namespace cpprun
