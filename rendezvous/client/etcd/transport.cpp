#include "rendezvous/client/etcd/transport.hpp"

#include <sys/socket.h>

#include <boost/asio/buffer.hpp>
#include <boost/asio/write.hpp>
#include <cerrno>
#include <utility>

#include "rendezvous/client/connector.hpp"

namespace cpprun::etcd {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;

namespace {

class PlainWire final : public SocketTransport, public std::enable_shared_from_this<PlainWire> {
 public:
  using SocketTransport::SocketTransport;

  void write(std::span<const char> bytes, Sent sent) override {
    asio::async_write(
        socket(), asio::buffer(bytes.data(), bytes.size()),
        [self = shared_from_this(), sent = std::move(sent)](error_code error, size_t) {
          if (!self->is_closed()) sent(error);
        });
  }

  void read(std::span<char> room, Got got) override {
    socket().async_read_some(
        asio::buffer(room.data(), room.size()),
        [self = shared_from_this(), got = std::move(got)](error_code error, size_t size) {
          if (!self->is_closed()) got(error, size);
        });
  }
};

}  // namespace

SocketTransport::SocketTransport(std::unique_ptr<tcp::socket> socket)
    : socket_(std::move(socket)) {}

void SocketTransport::close() {
  is_closed_ = true;
  error_code ignored;
  socket_->close(ignored);
}

bool SocketTransport::is_stale() {
  char byte = 0;
  const ssize_t seen = ::recv(socket_->native_handle(), &byte, 1, MSG_PEEK | MSG_DONTWAIT);
  return seen >= 0 || (errno != EAGAIN && errno != EWOULDBLOCK);
}

std::string SocketTransport::own_address() {
  error_code ignored;
  return unmapped(socket_->local_endpoint(ignored).address());
}

std::shared_ptr<Transport> plain_transport(std::unique_ptr<tcp::socket> socket) {
  return std::make_shared<PlainWire>(std::move(socket));
}

}  // namespace cpprun::etcd
