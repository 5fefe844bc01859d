// HttpExchange: one request of HTTP over a wire, and its reply. Without a limit in time of its own:
// whoever started it cancels it.
//
// Thread: the loop's. Lives until its outcome was told or it was cancelled.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <string>

#include "rendezvous/client/etcd/http_reply.hpp"
#include "rendezvous/client/etcd/transport.hpp"

namespace cpprun::etcd {

class HttpExchange : public std::enable_shared_from_this<HttpExchange> {
 public:
  struct Outcome {
    std::string why{};  // it came to nothing; "": there is a reply
    int status = 0;
    std::string body{};
    bool keeps_transport = false;  // which may be used again
  };
  using Done = std::function<void(Outcome)>;

  // `request` is the whole of it, header and body. Told once, from the loop.
  static std::shared_ptr<HttpExchange> start(std::shared_ptr<Transport> transport,
                                             std::string request, Done done);
  void cancel();  // nothing is told any more; the wire is closed

  HttpExchange(std::shared_ptr<Transport> transport, std::string request,
               Done done);  // use start()

 private:
  void read();
  void on_read(const boost::system::error_code& error, size_t size);
  void finish(Outcome outcome);

  std::shared_ptr<Transport> transport_;
  std::string request_;
  Done done_;
  HttpReply reply_;
  bool has_received_ = false;  // of the other side, anything
  std::array<char, 4096> room_{};
};

// "POST path" with a body of JSON, for this host; `token`: of a user, or "".
std::string post_request(const std::string& host, const std::string& path, const std::string& token,
                         const std::string& body);

}  // namespace cpprun::etcd
