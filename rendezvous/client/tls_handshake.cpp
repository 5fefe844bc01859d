#include "rendezvous/client/tls_handshake.hpp"

#include <boost/asio/buffer.hpp>
#include <boost/asio/write.hpp>
#include <span>
#include <utility>

#include "common/limits/tls.hpp"

namespace cpprun {

namespace asio = boost::asio;
using boost::system::error_code;

namespace {

constexpr const char* kHungUp =
    "it ends the connection in the TLS handshake: it may have no secret, or be an older cpprun";

}  // namespace

TlsHandshake::TlsHandshake(std::unique_ptr<Socket> socket, std::unique_ptr<TlsStream> stream,
                           Callback callback)
    : socket_(std::move(socket)),
      stream_(std::move(stream)),
      callback_(std::move(callback)),
      limit_(socket_->get_executor()) {}

std::shared_ptr<TlsHandshake> TlsHandshake::start(std::unique_ptr<Socket> socket,
                                                  std::unique_ptr<TlsStream> stream,
                                                  Callback callback) {
  auto made =
      std::make_shared<TlsHandshake>(std::move(socket), std::move(stream), std::move(callback));
  made->limit_.expires_after(limits::kTlsHandshakeTimeout);
  made->limit_.async_wait([weak = made->weak_from_this()](error_code error) {
    const std::shared_ptr<TlsHandshake> self = weak.lock();
    if (!error && self) self->complete("no answer in the TLS handshake");
  });
  made->step();
  return made;
}

void TlsHandshake::cancel() {
  callback_ = nullptr;
  error_code ignored;
  if (socket_) socket_->close(ignored);
  limit_.cancel();
}

// The client speaks first, so the first call always has something to send.
void TlsHandshake::step() {
  const TlsStream::State state = stream_->shake_hands();
  outgoing_ = stream_->take_output();
  if (outgoing_.empty() && state == TlsStream::State::Handshake) return receive();
  auto then = [self = shared_from_this(), state](error_code error, size_t) {
    if (!self->callback_) return;
    if (state == TlsStream::State::Failed) return self->complete(self->stream_->why());
    if (error) return self->complete(error.message());
    if (state == TlsStream::State::Handshake) return self->receive();
    self->complete("");
  };
  asio::async_write(*socket_, asio::buffer(outgoing_), std::move(then));
}

void TlsHandshake::receive() {
  socket_->async_read_some(asio::buffer(incoming_),
                           [self = shared_from_this()](error_code error, size_t size) {
                             if (!self->callback_) return;
                             if (error) return self->complete(kHungUp);
                             self->stream_->feed(std::span(self->incoming_).first(size));
                             self->step();
                           });
}

void TlsHandshake::complete(const std::string& why) {
  Callback callback = std::exchange(callback_, nullptr);
  limit_.cancel();
  if (!callback) return;
  if (why.empty()) return callback({std::move(socket_), std::move(stream_), ""});
  error_code ignored;
  socket_->close(ignored);
  callback({nullptr, nullptr, why});
}

}  // namespace cpprun
