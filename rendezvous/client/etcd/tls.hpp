// Tls: trusted certificates and the client's own certificate; begins encrypted connections to
// members of etcd. TLS 1.2 or newer; a member needs a certificate for the name or address by which
// it was addressed. Thread: any, but one at a time.
#pragma once

#include <boost/asio/ip/tcp.hpp>
#include <functional>
#include <memory>
#include <string>

#include "common/tls/tls_context.hpp"
#include "rendezvous/client/etcd/transport.hpp"
#include "rendezvous/client/tls_handshake.hpp"

namespace cpprun::etcd {

class Tls : public std::enable_shared_from_this<Tls> {
 public:
  // Called once, from the loop; null and the reason if the handshake fails.
  using Done = std::function<void(std::shared_ptr<Transport>, const std::string& why)>;

  // load_tls() makes and configures the context.
  explicit Tls(std::unique_ptr<TlsContext> context) : context_(std::move(context)) {}

  // Starts the handshake over a connected socket. After cancel() no callback follows.
  std::shared_ptr<TlsHandshake> start(std::unique_ptr<boost::asio::ip::tcp::socket> socket,
                                      const std::string& host, Done done);

 private:
  const std::unique_ptr<TlsContext> context_;
};

}  // namespace cpprun::etcd
