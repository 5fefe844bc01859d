// Tls: how a member of etcd is believed, and who we are to it; makes encrypted wires.
//
// TLS 1.2 or newer; a member must show a certificate for the name or address by which it was named.
// Thread: any, but one at a time.
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
  // Told once, from the loop: null and why, if the two do not come together.
  using Done = std::function<void(std::shared_ptr<Transport>, const std::string& why)>;

  // Errors: no OpenSSL here, files that can't be read or do not fit together.
  static Result<std::shared_ptr<Tls>> make(const TlsFiles& files);
  ~Tls();

  // Shakes hands over a connection that stands. What is returned is closed to give up: nothing is
  // told then.
  std::shared_ptr<Transport> start(std::unique_ptr<boost::asio::ip::tcp::socket> socket,
                                   const std::string& host, Done done);

 private:
  struct Inner;
  explicit Tls(std::unique_ptr<Inner> inner);
  std::unique_ptr<Inner> inner_;
};

}  // namespace cpprun::etcd
