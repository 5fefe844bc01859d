// HTTP on the rendezvous port: one GET, one answer, end of connection. For probes, people with
// curl, and scrapers.
//
// No Asio here; Beast's parser lives in the .cpp file only. Thread: the server's loop.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "rendezvous/server/session.hpp"

namespace cpprun {

struct HttpAnswer {
  int status = 404;
  std::string type = "text/plain; charset=utf-8";
  std::string body = "not found\n";
};

// Path (without the query) to answer. Called once for each good GET or HEAD.
using HttpPages = std::function<HttpAnswer(std::string_view path)>;

class HttpSession final : public Session {
 public:
  // `pages` outlives the session.
  HttpSession(Connection& connection, const HttpPages& pages)
      : connection_(connection), pages_(pages) {}
  size_t on_bytes(std::span<const uint8_t> bytes) override;
  size_t wants() const override { return wants_; }
  void on_closed(CloseKind) override {}

 private:
  HttpAnswer answer(std::string_view request, bool& has_body);

  Connection& connection_;
  const HttpPages& pages_;
  size_t wants_ = 1;
};

}  // namespace cpprun
