#include "rendezvous/server/listener.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cerrno>
#include <cstring>
#include <string>

#include "common/limits/server.hpp"
#include "common/thread/loop_mark.hpp"
#include "rendezvous/server/descriptor_limits.hpp"

namespace cpprun {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;

constexpr int kAtOnce = 64;  // accepted connections before other handlers run

int open_spare() {
  const Unblocking device("the kernel's own device");
  return ::open("/dev/null", O_RDONLY | O_CLOEXEC);
}

}  // namespace

struct Listener::Io {
  explicit Io(asio::io_context& loop) : acceptor(loop), timer(loop) {}
  asio::ip::tcp::acceptor acceptor;
  asio::steady_timer timer;
};

Listener::Listener(asio::io_context& loop, int fd, OnAccept on_accept)
    : io_(std::make_unique<Io>(loop)), on_accept_(std::move(on_accept)), spare_(open_spare()) {
  io_->acceptor.assign(asio::ip::tcp::v6(), fd);
}

Listener::~Listener() { close(); }

void Listener::start() { wait(); }

void Listener::close() {
  if (is_closed_) return;
  is_closed_ = true;
  error_code ignored;
  io_->acceptor.close(ignored);
  io_->timer.cancel();
  if (spare_ >= 0) ::close(spare_);
}

void Listener::wait() {
  io_->acceptor.async_wait(asio::ip::tcp::acceptor::wait_read,
                           [self = shared_from_this()](error_code error) {
                             if (error || self->is_closed_) return;
                             self->accept_some();
                           });
}

void Listener::accept_some() {
  for (int i = 0; i < kAtOnce && !is_closed_; ++i) {
    if (accept_one()) continue;
    int reason = errno;
    if (reason == EAGAIN || reason == EWOULDBLOCK) break;
    if (reason == EMFILE && spare_ >= 0) {
      reject_one();
      continue;
    }
    bool is_peers_fault = reason == ECONNABORTED || reason == EINTR || reason == EPROTO ||
                          reason == ENETDOWN || reason == EHOSTUNREACH || reason == ENETUNREACH;
    if (is_peers_fault) continue;
    if (reason == EMFILE) log_out_of_descriptors();
    return pause();
  }
  if (!is_closed_) wait();
}

// accept4() because Asio 1.81 accepts without close-on-exec.
bool Listener::accept_one() {
  sockaddr_storage peer{};
  socklen_t size = sizeof peer;
  int fd = ::accept4(io_->acceptor.native_handle(), reinterpret_cast<sockaddr*>(&peer), &size,
                     SOCK_NONBLOCK | SOCK_CLOEXEC);
  if (fd < 0) return false;
  on_accept_(fd, peer);
  return true;
}

// Accepts and closes one connection, so that its peer learns at once and the queue moves on.
void Listener::reject_one() {
  log_out_of_descriptors();
  ::close(spare_);
  int fd = ::accept4(io_->acceptor.native_handle(), nullptr, nullptr, SOCK_CLOEXEC);
  if (fd >= 0) ::close(fd);
  spare_ = open_spare();
}

void Listener::pause() {
  io_->timer.expires_after(limits::kAcceptPause);
  io_->timer.async_wait([self = shared_from_this()](error_code error) {
    if (error || self->is_closed_) return;
    if (self->spare_ < 0) self->spare_ = open_spare();
    self->accept_some();
  });
}

}  // namespace cpprun
