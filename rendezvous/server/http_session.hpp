// HTTP on the rendezvous port: one GET, one answer, end of connection; or, for who reads events, an
// answer that goes on. For probes, people with curl or a browser, and scrapers.
//
// No Asio here; Beast's parser lives in the .cpp file only. Thread: the server's loop.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "rendezvous/server/session.hpp"

namespace cpprun {

struct HttpResponse {
  int status = 404;
  std::string type = "text/plain; charset=utf-8";
  std::string body = "not found\n";
  std::string headers{};  // further lines, each with its end
  bool goes_on = false;   // a GET is not ended: EventStreams has the connection from here on
  std::string topic{};    // then the private topic that it is about, if it is
};

struct HttpPages {
  // Path and query (without the question mark) to answer, and the address of who asks. Called once
  // for each good GET or HEAD.
  std::function<HttpResponse(std::string_view path, std::string_view query,
                             const std::string& peer)>
      answer;
  // An answer that goes on has begun; false: there is no room. And it is over.
  std::function<bool(Connection&, const std::string& topic)> stream_began;
  std::function<void(SessionId)> stream_ended;
};

class HttpSession final : public Session {
 public:
  // `pages` outlives the session.
  HttpSession(Connection& connection, const HttpPages& pages)
      : connection_(connection), pages_(pages) {}
  size_t on_bytes(std::span<const uint8_t> bytes) override;
  size_t wants() const override { return wants_; }
  void on_closed(CloseKind) override;

 private:
  void begin_stream(const HttpResponse& said);
  HttpResponse answer(std::string_view request, bool& has_body);

  Connection& connection_;
  const HttpPages& pages_;
  size_t wants_ = 1;
  bool is_stream_ = false;
};

}  // namespace cpprun
