#include "rendezvous/client/etcd/http_exchange.hpp"

#include <boost/asio/error.hpp>
#include <string_view>
#include <utility>

namespace cpprun::etcd {

using boost::system::error_code;

namespace {

constexpr const char* kMute =
    "it ended the connection without a reply (if it wants TLS: --rdzv-conf=protocol=https)";

}  // namespace

HttpExchange::HttpExchange(std::shared_ptr<Transport> transport, std::string request, Done done)
    : transport_(std::move(transport)), request_(std::move(request)), done_(std::move(done)) {}

std::shared_ptr<HttpExchange> HttpExchange::start(std::shared_ptr<Transport> transport,
                                                  std::string request, Done done) {
  auto made =
      std::make_shared<HttpExchange>(std::move(transport), std::move(request), std::move(done));
  made->transport_->write(made->request_, [made](const error_code& error) {
    if (error) {
      made->finish({made->transport_->why(error)});
    } else {
      made->read();
    }
  });
  return made;
}

void HttpExchange::cancel() {
  done_ = nullptr;
  transport_->close();
}

void HttpExchange::read() {
  transport_->read(room_, [self = shared_from_this()](const error_code& error, size_t size) {
    self->on_read(error, size);
  });
}

void HttpExchange::on_read(const error_code& error, size_t size) {
  const bool has_ended = error == boost::asio::error::eof;
  if (error && !has_ended) return finish({transport_->why(error)});
  if (has_ended && !has_received_) return finish({kMute});
  has_received_ = true;
  const HttpReply::State state =
      has_ended ? reply_.end() : reply_.feed(std::string_view(room_.data(), size));
  switch (state) {
    case HttpReply::State::NeedMore: return read();
    case HttpReply::State::Broken: return finish({reply_.why()});
    case HttpReply::State::Whole:
      return finish({"", reply_.status(), reply_.body(), reply_.keeps_connection()});
  }
}

void HttpExchange::finish(Outcome outcome) {
  if (!outcome.keeps_transport) transport_->close();
  Done done = std::exchange(done_, nullptr);
  if (done) done(std::move(outcome));
}

std::string post_request(const std::string& host, const GatewayRequest& request,
                         const std::string& token) {
  const std::string authorization = token.empty() ? "" : "Authorization: " + token + "\r\n";
  return "POST " + request.path + " HTTP/1.1\r\nHost: " + host +
         "\r\nContent-Type: application/json\r\nContent-Length: " +
         std::to_string(request.body.size()) + "\r\n" + authorization + "\r\n" + request.body;
}

}  // namespace cpprun::etcd
