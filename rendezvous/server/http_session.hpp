// HTTP on the rendezvous port: one GET, one response, then close; for /events a response that
// streams. For probes, curl, browsers and scrapers.
//
// No Asio here; Beast's parser lives in the .cpp file only. Thread: the server's loop.
#pragma once

#include <string>
#include <string_view>

#include "rendezvous/server/session.hpp"

namespace cpprun {

struct HttpResponse {
  int status = 404;
  std::string type = "text/plain; charset=utf-8";
  std::string body = "not found\n";
  std::string headers{};   // further header lines, each with CRLF
  bool is_stream = false;  // streams: EventStreams takes over the connection
  std::string topic{};     // the private topic of the stream, if any
};

struct HttpRequest {
  std::string_view path;
  std::string_view query;   // without the question mark
  std::string_view accept;  // the header; "": there is none
  std::string peer;         // its address
};

class HttpPages {
 public:
  virtual ~HttpPages() = default;
  // Whether clients may ask this server by the name in their Host header; empty: they sent none.
  virtual bool is_own_name(std::string_view host) const = 0;
  // Makes the response. Called once for each valid GET or HEAD.
  virtual HttpResponse page(const HttpRequest& request) = 0;
  // A stream begins (false: too many streams) and ends.
  virtual bool stream_began(Connection& connection, const std::string& topic) = 0;
  virtual void stream_ended(SessionId id) = 0;
};

class HttpSession final : public Session {
 public:
  // `pages` outlives the session.
  HttpSession(Connection& connection, HttpPages& pages) : connection_(connection), pages_(pages) {}
  size_t on_bytes(std::span<const uint8_t> bytes) override;
  size_t wants() const override { return wants_; }
  void on_closed(CloseKind) override;

 private:
  void begin_stream(const HttpResponse& response);
  HttpResponse answer(std::string_view request, bool& has_body);

  Connection& connection_;
  HttpPages& pages_;
  size_t wants_ = 1;
  bool is_stream_ = false;
};

}  // namespace cpprun
