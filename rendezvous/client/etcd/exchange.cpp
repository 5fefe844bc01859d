#include "rendezvous/client/etcd/exchange.hpp"

#include <boost/asio/error.hpp>
#include <string_view>
#include <utility>

namespace cpprun::etcd {

using boost::system::error_code;

namespace {

constexpr const char* kMute =
    "it ended the connection without a word (if it wants TLS: --rdzv-conf=protocol=https)";

}  // namespace

Exchange::Exchange(std::shared_ptr<Wire> wire, std::string request, Done done)
    : wire_(std::move(wire)), request_(std::move(request)), done_(std::move(done)) {}

std::shared_ptr<Exchange> Exchange::start(std::shared_ptr<Wire> wire, std::string request,
                                          Done done) {
  auto made = std::make_shared<Exchange>(std::move(wire), std::move(request), std::move(done));
  made->wire_->write(made->request_, [made](const error_code& error) {
    if (error) {
      made->tell({made->wire_->why(error)});
    } else {
      made->read();
    }
  });
  return made;
}

void Exchange::cancel() {
  done_ = nullptr;
  wire_->close();
}

void Exchange::read() {
  wire_->read(room_, [self = shared_from_this()](const error_code& error, size_t size) {
    self->on_read(error, size);
  });
}

void Exchange::on_read(const error_code& error, size_t size) {
  const bool has_ended = error == boost::asio::error::eof;
  if (error && !has_ended) return tell({wire_->why(error)});
  if (has_ended && !has_heard_) return tell({kMute});
  has_heard_ = true;
  const HttpReply::State state =
      has_ended ? reply_.end() : reply_.feed(std::string_view(room_.data(), size));
  switch (state) {
    case HttpReply::State::NeedMore:
      return read();
    case HttpReply::State::Broken:
      return tell({reply_.why()});
    case HttpReply::State::Whole:
      return tell({"", reply_.status(), reply_.body(), reply_.keeps_connection()});
  }
}

void Exchange::tell(Outcome outcome) {
  if (!outcome.keeps_wire) wire_->close();
  Done done = std::exchange(done_, nullptr);
  if (done) done(std::move(outcome));
}

std::string post_request(const std::string& host, const std::string& path, const std::string& token,
                         const std::string& body) {
  std::string request =
      "POST " + path + " HTTP/1.1\r\nHost: " + host +
      "\r\nContent-Type: application/json\r\nContent-Length: " + std::to_string(body.size()) +
      "\r\n";
  if (!token.empty()) request += "Authorization: " + token + "\r\n";
  return request + "\r\n" + body;
}

}  // namespace cpprun::etcd
