#include "cpprun/dist/init/local_address.hpp"

#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <thread>

#include "common/machine/unique_fd.hpp"
#include "cpprun/dist/group/group_sockets.hpp"

namespace cpprun::dist {
namespace {

using Clock = std::chrono::steady_clock;
using Milliseconds = std::chrono::milliseconds;

// A documentation address (RFC 5737), used to look up the default route.
constexpr const char* kFarAway = "192.0.2.1";
constexpr Milliseconds kFirstPause{2};
constexpr Milliseconds kLongestPause{50};

struct Freed {
  void operator()(addrinfo* list) const { freeaddrinfo(list); }
};
using Addresses = std::unique_ptr<addrinfo, Freed>;

Addresses addresses_of(const std::string& host, int port, int type, std::string& why) {
  addrinfo hints{};
  hints.ai_socktype = type;
  addrinfo* found = nullptr;
  const int error = getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found);
  if (error != 0) why = "'" + host + "' can't be resolved: " + gai_strerror(error);
  return Addresses(error == 0 ? found : nullptr);
}

std::string numeric(const sockaddr_storage& address, socklen_t length) {
  char host[NI_MAXHOST] = {};
  const int error = getnameinfo(reinterpret_cast<const sockaddr*>(&address), length, host,
                                sizeof host, nullptr, 0, NI_NUMERICHOST);
  return error == 0 ? host : "";
}

std::string route_to(const addrinfo& target) {
  const UniqueFd socket(::socket(target.ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (socket.get() < 0 || connect(socket.get(), target.ai_addr, target.ai_addrlen) != 0) return "";
  sockaddr_storage own{};
  socklen_t length = sizeof own;
  if (getsockname(socket.get(), reinterpret_cast<sockaddr*>(&own), &length) != 0) return "";
  return numeric(own, length);
}

// Returns 0, or the errno of a connection that failed or took longer than `limit`.
int try_connect(const addrinfo& target, Milliseconds limit) {
  const UniqueFd socket(::socket(target.ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (socket.get() < 0) return errno;
  if (connect(socket.get(), target.ai_addr, target.ai_addrlen) == 0) return 0;
  if (errno != EINPROGRESS) return errno;
  pollfd wanted{socket.get(), POLLOUT, 0};
  if (poll(&wanted, 1, static_cast<int>(limit.count())) <= 0) return ETIMEDOUT;
  int error = 0;
  socklen_t length = sizeof error;
  getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &error, &length);
  return error;
}

Milliseconds until(Clock::time_point end) {
  const auto left = std::chrono::duration_cast<Milliseconds>(end - Clock::now());
  return std::clamp(left, Milliseconds(0), Milliseconds(10'000));
}

// Returns "" if one of the addresses accepts.
std::string try_all(const addrinfo* first, Clock::time_point end) {
  int error = EADDRNOTAVAIL;
  for (const addrinfo* target = first; target != nullptr; target = target->ai_next) {
    error = try_connect(*target, std::max(until(end), Milliseconds(1)));
    if (error == 0) return "";
  }
  return std::strerror(error);
}

}  // namespace

std::string local_address_towards(const std::string& host) {
  std::string why;
  const Addresses found = addresses_of(host.empty() ? kFarAway : host, 9, SOCK_DGRAM, why);
  for (const addrinfo* target = found.get(); target != nullptr; target = target->ai_next) {
    std::string own = route_to(*target);
    if (!own.empty()) return own;
  }
  return "";
}

std::string wait_for_listener(const std::string& host, int port, Milliseconds limit) {
  const Clock::time_point end = Clock::now() + limit;
  Milliseconds pause = kFirstPause;
  while (true) {
    std::string why;
    const Addresses found = addresses_of(host, port, SOCK_STREAM, why);
    if (found) why = try_all(found.get(), end);
    if (why.empty() || Clock::now() + pause > end) return why;
    if (GroupSockets::are_shut_down()) return "another worker has failed";
    std::this_thread::sleep_for(pause);
    pause = std::min(pause * 2, kLongestPause);
  }
}

}  // namespace cpprun::dist
