// Tls: trusted certificates and the client's own certificate; makes encrypted transports to members
// of etcd. TLS 1.2 or newer; a member needs a certificate for the name or address by which it was
// addressed. Thread: any, but one at a time.
#pragma once

#include <boost/asio/ip/tcp.hpp>
#include <functional>
#include <memory>
#include <string>

#include "rendezvous/client/etcd/openssl.hpp"
#include "rendezvous/client/etcd/transport.hpp"

namespace cpprun::etcd {

class Tls {
 public:
  // Called once, from the loop; null and the reason if the handshake fails.
  using Done = std::function<void(std::shared_ptr<Transport>, const std::string& why)>;

  // Takes the context. load_tls() makes and configures it.
  Tls(const OpenSsl& api, SSL_CTX* context) : api_(api), context_(context) {}
  ~Tls() { api_.SSL_CTX_free(context_); }
  Tls(const Tls&) = delete;

  // Starts the handshake over a connected socket. Closing the returned transport cancels it; no
  // callback follows then.
  std::shared_ptr<Transport> start(std::unique_ptr<boost::asio::ip::tcp::socket> socket,
                                   const std::string& host, Done done);

 private:
  const OpenSsl& api_;
  SSL_CTX* context_;
};

}  // namespace cpprun::etcd
