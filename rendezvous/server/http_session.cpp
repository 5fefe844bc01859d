// The only translation unit that includes Beast.
#include "rendezvous/server/http_session.hpp"

#include <algorithm>
#include <boost/asio/buffer.hpp>
#include <boost/beast/http/empty_body.hpp>
#include <boost/beast/http/parser.hpp>

#include "common/limits/server.hpp"

namespace cpprun {
namespace {

namespace http = boost::beast::http;

HttpResponse plain(int status, std::string body) {
  return {status, "text/plain; charset=utf-8", std::move(body)};
}

// Browsers must not guess types and must not cache.
constexpr const char* kCaution =
    "\r\nX-Content-Type-Options: nosniff\r\nCache-Control: no-store\r\nConnection: close\r\n";

std::string render(const HttpResponse& answer, bool has_body) {
  auto reason = http::obsolete_reason(http::int_to_status(static_cast<unsigned>(answer.status)));
  std::string out = "HTTP/1.1 " + std::to_string(answer.status) + " ";
  out.append(reason.data(), reason.size());
  out += "\r\nContent-Type: " + answer.type;
  if (!answer.is_stream) out += "\r\nContent-Length: " + std::to_string(answer.body.size());
  if (answer.status == 405) out += "\r\nAllow: GET, HEAD";
  out += kCaution + answer.headers + "\r\n";
  if (has_body) out += answer.body;
  return out;
}

}  // namespace

size_t HttpSession::on_bytes(std::span<const uint8_t> bytes) {
  if (is_stream_) return bytes.size();  // a reader of events has nothing more to send
  std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  size_t end = text.substr(0, limits::kHttpHeaderBytes).find("\r\n\r\n");
  if (end == std::string_view::npos && text.size() < limits::kHttpHeaderBytes) {
    wants_ = bytes.size() + 1;
    return 0;
  }
  bool has_body = true;
  HttpResponse response = end == std::string_view::npos ? plain(431, "the header is too long\n")
                                                        : answer(text.substr(0, end + 4), has_body);
  if (response.is_stream && has_body) {
    begin_stream(response);
  } else {
    connection_.send(render(response, has_body));
    connection_.close();
  }
  return bytes.size();
}

void HttpSession::begin_stream(const HttpResponse& response) {
  is_stream_ = pages_.stream_began(connection_, response.topic);
  if (is_stream_) {
    wants_ = 1;
    connection_.send(render(response, true));
    return;
  }
  connection_.send(render(plain(503, "too many read events here already\n"), true));
  connection_.close();
}

void HttpSession::on_closed(CloseKind) {
  if (is_stream_) pages_.stream_ended(connection_.id());
}

HttpResponse HttpSession::answer(std::string_view request, bool& has_body) {
  http::request_parser<http::empty_body> parser;
  parser.header_limit(limits::kHttpHeaderBytes);
  parser.skip(true);  // ignore a body; the check of the method rejects requests that have one
  boost::system::error_code error;
  parser.put(boost::asio::buffer(request.data(), request.size()), error);
  if (error || !parser.is_header_done()) return plain(400, "this is no HTTP request\n");
  has_body = parser.get().method() != http::verb::head;
  if (parser.get().method() != http::verb::get && has_body) {
    return plain(405, "only GET and HEAD are served here\n");
  }
  const auto host = parser.get()[http::field::host];
  if (!pages_.is_own_name(std::string_view(host.data(), host.size()))) {
    return plain(421,
                 "this server does not go by that name; use its address, or start it with "
                 "--allowed-host=NAME\n");
  }
  auto target = parser.get().target();
  std::string_view path(target.data(), target.size());
  const size_t mark = std::min(path.find('?'), path.size());
  const std::string_view query = path.substr(std::min(mark + 1, path.size()));
  const auto accept = parser.get()[http::field::accept];
  return pages_.page({path.substr(0, mark), query, std::string_view(accept.data(), accept.size()),
                      connection_.peer_address()});
}

}  // namespace cpprun
