// Tls: trusted certificates and the client's own certificate; makes encrypted transports to members
// of etcd. TLS 1.2 or newer; a member needs a certificate for the name or address by which it was
// addressed. Thread: any, but one at a time.
#pragma once

#include <boost/asio/ip/tcp.hpp>
#include <functional>
#include <memory>
#include <string>

#include "common/result.hpp"
#include "rendezvous/client/etcd/etcd_client.hpp"
#include "rendezvous/client/etcd/transport.hpp"

namespace cpprun::etcd {

class Tls {
 public:
  // Called once, from the loop; null and the reason if the handshake fails.
  using Done = std::function<void(std::shared_ptr<Transport>, const std::string& why)>;

  // Errors: no OpenSSL on this machine; files that cannot be read or do not match.
  static Result<std::shared_ptr<Tls>> make(const TlsFiles& files);
  ~Tls();

  // Starts the handshake over a connected socket. Closing the returned transport cancels it; no
  // callback follows then.
  std::shared_ptr<Transport> start(std::unique_ptr<boost::asio::ip::tcp::socket> socket,
                                   const std::string& host, Done done);

 private:
  struct Inner;
  explicit Tls(std::unique_ptr<Inner> inner);
  std::unique_ptr<Inner> inner_;
};

}  // namespace cpprun::etcd
