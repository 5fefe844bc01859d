// Exchange: one request of HTTP over a wire, and its reply. Without a limit in time of its own:
// whoever started it cancels it.
//
// Thread: the loop's. Lives until its outcome was told or it was cancelled.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <string>

#include "rendezvous/client/etcd/http_reply.hpp"
#include "rendezvous/client/etcd/wire.hpp"

namespace cpprun::etcd {

class Exchange : public std::enable_shared_from_this<Exchange> {
 public:
  struct Outcome {
    std::string why{};  // it came to nothing; "": there is a reply
    int status = 0;
    std::string body{};
    bool keeps_wire = false;  // which may be used again
  };
  using Done = std::function<void(Outcome)>;

  // `request` is the whole of it, header and body. Told once, from the loop.
  static std::shared_ptr<Exchange> start(std::shared_ptr<Wire> wire, std::string request,
                                         Done done);
  void cancel();  // nothing is told any more; the wire is closed

  Exchange(std::shared_ptr<Wire> wire, std::string request, Done done);  // use start()

 private:
  void read();
  void on_read(const boost::system::error_code& error, size_t size);
  void tell(Outcome outcome);

  std::shared_ptr<Wire> wire_;
  std::string request_;
  Done done_;
  HttpReply reply_;
  bool has_heard_ = false;  // of the other side, anything
  std::array<char, 4096> room_{};
};

// "POST path" with a body of JSON, for this host; `token`: of a user, or "".
std::string post_request(const std::string& host, const std::string& path, const std::string& token,
                         const std::string& body);

}  // namespace cpprun::etcd
