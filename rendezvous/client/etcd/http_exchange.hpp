// HttpExchange: one HTTP request over a transport, and its reply. It has no time limit; its owner
// cancels it. Thread: the loop's. Lives until the callback or cancel().
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <string>

#include "rendezvous/client/etcd/gateway.hpp"
#include "rendezvous/client/etcd/http_reply.hpp"
#include "rendezvous/client/etcd/transport.hpp"

namespace cpprun::etcd {

class HttpExchange : public std::enable_shared_from_this<HttpExchange> {
 public:
  struct Outcome {
    std::string why{};  // the error; "": there is a reply
    int status = 0;
    std::string body{};
    bool keeps_transport = false;  // the transport may be reused
  };
  using Done = std::function<void(Outcome)>;

  // `request`: header and body. `done` is called once, from the loop.
  static std::shared_ptr<HttpExchange> start(std::shared_ptr<Transport> transport,
                                             std::string request, Done done);
  void cancel();  // closes the transport; no callback follows

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
  bool has_received_ = false;  // any bytes
  std::array<char, 4096> room_{};
};

// A POST request with a JSON body; `token`: of a user, or "".
std::string post_request(const std::string& host, const GatewayRequest& request,
                         const std::string& token);

}  // namespace cpprun::etcd
