#include "agent/daemon/snapshots/peer_listener.hpp"

#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <mutex>
#include <optional>
#include <utility>

#include "common/limits/server.hpp"
#include "common/machine/sockets.hpp"
#include "common/thread/detached_thread.hpp"

namespace cpprun {
namespace {

constexpr int kBacklog = 256;

// At a free port; on all interfaces without an address.
UniqueFd listen_on(const std::string& address) {
  const std::optional<SocketAddress> place = tcp_address(address, 0);
  UniqueFd socket = place ? bind_tcp(*place) : UniqueFd();
  if (address.empty()) socket = bind_all(0);
  const bool is_listening = socket.is_open() && ::listen(socket.get(), kBacklog) == 0;
  return is_listening ? std::move(socket) : UniqueFd();
}

}  // namespace

class PeerListener::Impl : public std::enable_shared_from_this<Impl> {
 public:
  Impl(UniqueFd listener, size_t connections_max, Serve serve)
      : listener_(std::move(listener)),
        port_(local_port(listener_.get())),
        connections_max_(connections_max),
        serve_(std::move(serve)) {}

  Status start() {
    return start_detached_thread([self = shared_from_this()] { self->accept_all(); });
  }
  void stop() { cancel_token_->stop(); }
  uint16_t port() const { return port_; }

 private:
  void accept_all() {
    std::array<pollfd, 2> both{
        {{listener_.get(), POLLIN, 0}, {cancel_token_->descriptor(), POLLIN, 0}}};
    for (;;) {
      if (::poll(both.data(), both.size(), -1) < 0) continue;
      if (both[1].revents != 0) return;
      UniqueFd socket(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
      if (socket.is_open()) {
        take(PeerSocket(std::move(socket), cancel_token_));
      } else if (cancel_token_->wait(limits::kAcceptPause)) {  // perhaps out of descriptors: retry
        return;
      }
    }
  }

  void take(PeerSocket peer) {
    if (!enter()) return;
    auto shared = std::make_shared<PeerSocket>(std::move(peer));  // std::function must be copyable
    const Status ok = start_detached_thread([self = shared_from_this(), shared] {
      self->serve_(*shared);
      self->leave();
    });
    if (!ok) leave();
  }

  bool enter() {
    const std::lock_guard lock(mutex_);
    if (connections_ >= connections_max_) return false;
    ++connections_;
    return true;
  }
  void leave() {
    const std::lock_guard lock(mutex_);
    --connections_;
  }

  const UniqueFd listener_;
  const uint16_t port_;
  const size_t connections_max_;
  const Serve serve_;
  // Shared with the sockets of all threads.
  const std::shared_ptr<CancelToken> cancel_token_ = std::make_shared<CancelToken>();
  std::mutex mutex_;
  size_t connections_ = 0;
};

Result<std::unique_ptr<PeerListener>> PeerListener::start(const std::string& address,
                                                          size_t connections_max, Serve serve) {
  UniqueFd listener = listen_on(address);
  if (!listener.is_open()) {
    return Error{ErrorKind::System, "no port for other nodes could be opened on " +
                                        (address.empty() ? "this machine" : address)};
  }
  auto impl = std::make_shared<Impl>(std::move(listener), connections_max, std::move(serve));
  if (Status ok = impl->start(); !ok) return ok.error();
  return std::unique_ptr<PeerListener>(new PeerListener(std::move(impl)));
}

PeerListener::PeerListener(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}
PeerListener::~PeerListener() { impl_->stop(); }
uint16_t PeerListener::port() const { return impl_->port(); }

bool are_same_secret(const std::string& a, const std::string& b) {
  if (a.size() != b.size()) return false;
  unsigned char difference = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    difference = static_cast<unsigned char>(difference | (a[i] ^ b[i]));
  }
  return difference == 0;
}

}  // namespace cpprun
