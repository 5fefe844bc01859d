#include "rendezvous/client/etcd/tls_transport.hpp"

#include <array>
#include <boost/asio/buffer.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/write.hpp>
#include <utility>

#include "common/limits/tls.hpp"
#include "common/tls/openssl.hpp"
#include "rendezvous/client/etcd/etcd_client.hpp"

namespace cpprun::etcd {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;

namespace {

class TlsTransport final : public SocketTransport,
                           public std::enable_shared_from_this<TlsTransport> {
 public:
  TlsTransport(std::unique_ptr<tcp::socket> socket, std::unique_ptr<TlsStream> stream)
      : SocketTransport(std::move(socket)), stream_(std::move(stream)) {}

  void write(std::span<const char> bytes, Sent sent) override {
    stream_->write({reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()});
    outgoing_ = stream_->take_output();
    auto then = [self = shared_from_this(), sent = std::move(sent)](error_code error, size_t) {
      if (!self->is_closed()) sent(self->has_failed() ? asio::error::access_denied : error);
    };
    asio::async_write(socket(), asio::buffer(outgoing_), std::move(then));
  }

  void read(std::span<char> room, Got got) override {
    const size_t size = stream_->read({reinterpret_cast<uint8_t*>(room.data()), room.size()});
    const bool has_ended = stream_->state() == TlsStream::State::Ended;
    if (size == 0 && !has_ended && !has_failed()) return receive(room, std::move(got));
    error_code error;
    if (size == 0) error = has_ended ? error_code(asio::error::eof) : asio::error::access_denied;
    asio::post(socket().get_executor(), [self = shared_from_this(), got, error, size] {
      if (!self->is_closed()) got(error, size);
    });
  }

  std::string why(const error_code& error) const override {
    return "no TLS: " + (has_failed() ? stream_->why() : error.message());
  }

 private:
  bool has_failed() const { return stream_->state() == TlsStream::State::Failed; }

  void receive(std::span<char> room, Got got) {
    auto then = [self = shared_from_this(), room, got](error_code error, size_t size) {
      if (self->is_closed()) return;
      if (error) return got(error, 0);
      self->stream_->feed(std::span(self->incoming_).first(size));
      self->read(room, got);
    };
    socket().async_read_some(asio::buffer(incoming_), std::move(then));
  }

  std::unique_ptr<TlsStream> stream_;
  std::array<uint8_t, limits::kTlsRecordBytes> incoming_{};
  std::string outgoing_;
};

constexpr const char* kTrustHint = " (--rdzv-conf=cacert=FILE has the certificates to trust)";

}  // namespace

Result<std::shared_ptr<const TlsContext>> load_tls(const TlsFiles& files) {
  auto context = TlsContext::make(TlsContext::Side::Client, TLS1_2_VERSION);
  if (!context) return context.error();
  Status ok = (*context)->trust({"--rdzv-conf cacert", files.ca});
  if (ok && !files.cert.empty()) {
    ok = (*context)->use_certificate({"--rdzv-conf cert", files.cert},
                                     {"--rdzv-conf key", files.key});
  }
  if (!ok) return ok.error();
  return std::shared_ptr<const TlsContext>(std::move(*context));
}

std::shared_ptr<TlsHandshake> start_tls_transport(std::shared_ptr<const TlsContext> context,
                                                  std::unique_ptr<tcp::socket> socket,
                                                  const std::string& host, TlsTransportDone done) {
  Result<std::unique_ptr<TlsStream>> stream = TlsContext::connect(std::move(context), host);
  if (!stream) {
    asio::post(socket->get_executor(), [done = std::move(done), why = stream.error().text] {
      done(nullptr, "no TLS: " + why);
    });
    return nullptr;
  }
  return TlsHandshake::start(
      std::move(socket), std::move(*stream),
      [done = std::move(done)](TlsHandshake::Outcome outcome) {
        if (outcome.socket) {
          return done(
              std::make_shared<TlsTransport>(std::move(outcome.socket), std::move(outcome.stream)),
              "");
        }
        const bool is_trust = outcome.why.find("not trusted") != std::string::npos;
        done(nullptr, "no TLS: " + outcome.why + (is_trust ? kTrustHint : ""));
      });
}

}  // namespace cpprun::etcd
