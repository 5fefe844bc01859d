#include "rendezvous/client/store/store_link.hpp"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstring>
#include <memory>

#include "common/limits/store.hpp"
#include "common/machine/dead_peer.hpp"
#include "common/machine/no_delay.hpp"

namespace cpprun::worker {
namespace {

constexpr size_t kFirstPiece = 64 * 1024;  // first allocation for a long value

bool is_later(int number) { return number == EAGAIN || number == EWOULDBLOCK || number == EINTR; }

using Addresses = std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)>;

Error unreachable(const std::string& where, int number) {
  return Error{ErrorKind::Network,
               where + ": " + std::strerror(number) + " (errno " + std::to_string(number) + ")"};
}

Result<Addresses> look_up(const Endpoint& endpoint) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV;
  addrinfo* found = nullptr;
  int failed =
      ::getaddrinfo(endpoint.host.c_str(), std::to_string(endpoint.port).c_str(), &hints, &found);
  if (failed == 0) return Addresses(found, &::freeaddrinfo);
  return Error{ErrorKind::Network, "looking up '" + endpoint.host + "': " + ::gai_strerror(failed)};
}

std::string text_of(const addrinfo& address) {
  char host[NI_MAXHOST] = "?";
  char port[NI_MAXSERV] = "?";
  ::getnameinfo(address.ai_addr, address.ai_addrlen, host, sizeof host, port, sizeof port,
                NI_NUMERICHOST | NI_NUMERICSERV);
  bool is_v6 = address.ai_family == AF_INET6;
  return (is_v6 ? "[" + std::string(host) + "]:" : std::string(host) + ":") + port;
}

Result<UniqueFd> dial_one(const addrinfo& address, Deadline deadline) {
  const int type = SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK;
  UniqueFd fd(::socket(address.ai_family, type, 0));
  if (!fd.is_open()) return unreachable(text_of(address), errno);
  send_without_delay(fd.get());
  detect_dead_peer(fd.get());
  if (::connect(fd.get(), address.ai_addr, address.ai_addrlen) == 0) return fd;
  // An interrupted connect continues in the background.
  if (errno != EINPROGRESS && errno != EINTR) return unreachable(text_of(address), errno);
  if (!poll_until(fd.get(), POLLOUT, deadline)) return unreachable(text_of(address), ETIMEDOUT);
  int refused = 0;
  socklen_t size = sizeof refused;
  ::getsockopt(fd.get(), SOL_SOCKET, SO_ERROR, &refused, &size);
  if (refused != 0) return unreachable(text_of(address), refused);
  return fd;
}

}  // namespace

Result<UniqueFd> dial(const Endpoint& endpoint, Deadline deadline) {
  Result<Addresses> addresses = look_up(endpoint);
  if (!addresses) return addresses.error();
  Result<UniqueFd> last = Error{ErrorKind::Network, "'" + endpoint.host + "' has no address"};
  for (const addrinfo* one = addresses->get(); one != nullptr; one = one->ai_next) {
    last = dial_one(*one, std::min(deadline, after(limits::kStoreConnectTimeout)));
    if (last) break;
  }
  return last;
}

StoreLink::StoreLink(UniqueFd socket, std::string peer)
    : socket_(std::move(socket)), peer_(std::move(peer)) {}

Error StoreLink::close(Error why) {
  socket_.reset();
  if (trouble_.empty()) trouble_ = why.text;
  return why;
}

Status StoreLink::refusal() const {
  return Error{ErrorKind::Network, "the connection to the store at " + peer_ +
                                       " is closed, because: " + trouble_ +
                                       "; connect again for another try"};
}

Status StoreLink::send(std::string_view bytes, Deadline deadline) {
  if (!socket_.is_open()) return refusal();
  if (first_ != end_) {
    return close(
        {ErrorKind::Protocol, "the store at " + peer_ + " sent more than it was asked for"});
  }
  while (!bytes.empty()) {
    ssize_t sent = ::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent >= 0) {
      bytes.remove_prefix(static_cast<size_t>(sent));
      continue;
    }
    if (!is_later(errno)) {
      return close(
          {ErrorKind::Network, "sending to the store at " + peer_ + ": " + std::strerror(errno)});
    }
    if (!poll_until(socket_.get(), POLLOUT, deadline)) {
      return close({ErrorKind::Timeout,
                    "the store at " + peer_ + " did not take all of a request within the timeout"});
    }
  }
  return {};
}

Result<bool> StoreLink::has_input(Deadline deadline) {
  if (!socket_.is_open()) return refusal().error();
  return first_ != end_ || poll_until(socket_.get(), POLLIN, deadline);
}

size_t StoreLink::take(void* into, size_t room) {
  size_t size = std::min(room, end_ - first_);
  if (size != 0) std::memcpy(into, held_.data() + first_, size);
  first_ += size;
  return size;
}

Status StoreLink::receive(char* into, size_t room, size_t& got, Deadline deadline) {
  if (!socket_.is_open()) return refusal();
  for (;;) {
    if (!poll_until(socket_.get(), POLLIN, deadline)) {
      return close({ErrorKind::Timeout,
                    "the store at " + peer_ + " did not answer (in full) within the timeout"});
    }
    ssize_t size = ::recv(socket_.get(), into, room, 0);
    if (size > 0) {
      got = static_cast<size_t>(size);
      return {};
    }
    if (size == 0) {
      return close({ErrorKind::Network, "the store at " + peer_ + " closed the connection"});
    }
    if (!is_later(errno)) {
      return close(
          {ErrorKind::Network, "reading from the store at " + peer_ + ": " + std::strerror(errno)});
    }
  }
}

Status StoreLink::refill(Deadline deadline) {
  size_t got = 0;
  Status received = receive(held_.data(), held_.size(), got, deadline);
  first_ = 0;
  end_ = got;
  return received;
}

Status StoreLink::read(std::span<uint8_t> into, Deadline deadline) {
  for (;;) {
    into = into.subspan(take(into.data(), into.size()));
    if (into.empty()) return {};
    if (Status filled = refill(deadline); !filled) return filled;
  }
}

Result<std::string> StoreLink::read_string(size_t size, Deadline deadline) {
  std::string text(std::min(size, kFirstPiece), '\0');
  size_t have = take(text.data(), text.size());
  while (have < size) {
    if (have == text.size()) text.resize(std::min(size, 2 * have));
    size_t got = 0;
    Status received = receive(text.data() + have, text.size() - have, got, deadline);
    if (!received) return received.error();
    have += got;
  }
  return text;
}

}  // namespace cpprun::worker
