// Encrypted transports to members of etcd. TLS 1.2 or newer; a member needs a certificate for the
// name or address by which it was addressed. Thread: the loop's.
#pragma once

#include <boost/asio/ip/tcp.hpp>
#include <functional>
#include <memory>
#include <string>

#include "common/tls/tls_context.hpp"
#include "rendezvous/client/etcd/transport.hpp"
#include "rendezvous/client/tls_handshake.hpp"

namespace cpprun::etcd {

// Null and the reason if there is no transport.
using TlsTransportDone = std::function<void(std::shared_ptr<Transport>, const std::string& why)>;

// Starts the handshake over a connected socket. `done` is called once, from the loop; not after
// cancel(). Null: there is no handshake to cancel, because it could not begin.
std::shared_ptr<TlsHandshake> start_tls_transport(
    std::shared_ptr<const TlsContext> context, std::unique_ptr<boost::asio::ip::tcp::socket> socket,
    const std::string& host, TlsTransportDone done);

}  // namespace cpprun::etcd
