#include "rendezvous/client/store_probe.hpp"

#include <boost/asio/read.hpp>
#include <boost/asio/write.hpp>
#include <chrono>
#include <string_view>
#include <utility>

#include "rendezvous/protocol/tcpstore/tcpstore_encode.hpp"

namespace cpprun {

namespace asio = boost::asio;
using boost::system::error_code;

namespace {
constexpr uint32_t kNonce = 0x43505052;
constexpr std::chrono::seconds kAnswerLimit{1};
}  // namespace

StoreProbe::StoreProbe(asio::io_context& loop, Callback callback)
    : callback_(std::move(callback)), limit_(loop) {}

std::shared_ptr<StoreProbe> StoreProbe::start(asio::io_context& loop, const Endpoint& endpoint,
                                              Callback callback) {
  auto probe = std::make_shared<StoreProbe>(loop, std::move(callback));
  probe->connector_ = Connector::start(loop, endpoint, [probe](Connector::Outcome outcome) {
    probe->connector_.reset();
    probe->socket_ = std::move(outcome.socket);
    if (probe->socket_) {
      probe->send_probe();
    } else {
      probe->complete(false);
    }
  });
  return probe;
}

void StoreProbe::cancel() {
  callback_ = nullptr;
  if (auto attempt = std::exchange(connector_, nullptr)) attempt->cancel();
  error_code ignored;
  limit_.cancel();
  if (socket_) socket_->close(ignored);
}

void StoreProbe::send_probe() {
  tcpstore::put_validate(request_);
  tcpstore::put_ping(request_, kNonce);
  limit_.expires_after(kAnswerLimit);
  limit_.async_wait([self = shared_from_this()](error_code error) {
    if (!error) self->complete(false);
  });
  auto on_answer = [self = shared_from_this()](error_code error, size_t) {
    std::string echo;
    tcpstore::reply_nonce(echo, kNonce);
    self->complete(!error && std::string_view(self->answer_.data(), self->answer_.size()) == echo);
  };
  auto on_asked = [self = shared_from_this(), on_answer](error_code error, size_t) {
    if (error) {
      self->complete(false);
    } else {
      asio::async_read(*self->socket_, asio::buffer(self->answer_), on_answer);
    }
  };
  asio::async_write(*socket_, asio::buffer(request_), on_asked);
}

void StoreProbe::complete(bool is_store) {
  Callback callback = std::exchange(callback_, nullptr);
  cancel();
  if (callback) callback(is_store);
}

}  // namespace cpprun
