// One listening socket: accepts until it is closed. On errors it pauses instead of spinning.
// Internal to rendezvous/server.
#pragma once

#include <sys/socket.h>

#include <functional>
#include <memory>

namespace boost::asio {
class io_context;
}

namespace cpprun {

class Listener : public std::enable_shared_from_this<Listener> {
 public:
  // Called for each connection: its descriptor (non-blocking, close-on-exec; the callee owns it)
  // and the peer.
  using OnAccept = std::function<void(int fd, const sockaddr_storage& peer)>;

  // Takes `fd`, which listens already.
  Listener(boost::asio::io_context& loop, int fd, OnAccept on_accept);
  ~Listener();
  void start();
  void close();

 private:
  struct Io;

  void wait();
  void accept_some();
  bool accept_one();
  void reject_one();
  void pause();

  std::unique_ptr<Io> io_;
  OnAccept on_accept_;
  int spare_ = -1;  // closed for a moment to accept and reject when descriptors have run out
  bool is_closed_ = false;
};

}  // namespace cpprun
