// Beast parses replies here, and requests in rendezvous/server/http_session.cpp.
#include "rendezvous/client/etcd/http_reply.hpp"

#include <boost/asio/buffer.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>
#include <utility>

#include "common/limits/election.hpp"

namespace cpprun::etcd {

namespace http = boost::beast::http;

constexpr std::string_view kStart = "HTTP/1.";

struct HttpReply::Parser {
  http::response_parser<http::string_body> whole;
};

HttpReply::HttpReply() : parser_(std::make_unique<Parser>()) {
  parser_->whole.eager(true);
  parser_->whole.header_limit(limits::kEtcdHeaderBytes);
  parser_->whole.body_limit(limits::kEtcdBodyBytes);
}
HttpReply::~HttpReply() = default;

HttpReply::State HttpReply::broken(std::string why) {
  why_ = std::move(why);
  return state_ = State::Broken;
}

HttpReply::State HttpReply::feed(std::string_view bytes) {
  if (state_ != State::NeedMore) return state_;
  received_ += bytes.size();
  if (received_ > limits::kEtcdReplyBytes) return broken("its reply is too long");
  input_.append(bytes);
  // Beast waits for the end of a line, which a peer that speaks no HTTP may never send.
  const std::string_view start = std::string_view(input_).substr(0, kStart.size());
  const bool is_first = received_ == input_.size();
  if (is_first && start != kStart.substr(0, start.size())) return broken("no HTTP");
  boost::system::error_code error;
  const size_t taken = parser_->whole.put(boost::asio::buffer(input_), error);
  input_.erase(0, taken);
  if (error && error != http::error::need_more) return broken("no HTTP (" + error.message() + ")");
  if (parser_->whole.is_done()) state_ = State::Whole;
  return state_;
}

HttpReply::State HttpReply::end() {
  if (state_ != State::NeedMore) return state_;
  boost::system::error_code error;
  if (parser_->whole.got_some()) parser_->whole.put_eof(error);
  if (error || !parser_->whole.is_done()) return broken("it ended the connection");
  return state_ = State::Whole;
}

int HttpReply::status() const { return static_cast<int>(parser_->whole.get().result_int()); }
const std::string& HttpReply::body() const { return parser_->whole.get().body(); }
bool HttpReply::keeps_connection() const {
  return state_ == State::Whole && input_.empty() && parser_->whole.keep_alive();
}

}  // namespace cpprun::etcd
