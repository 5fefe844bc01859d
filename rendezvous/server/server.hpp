// The rendezvous server: ports on which torch's TCPStore protocol, cpprun's control protocol and
// HTTP are served.
//
// A shell: it accepts, tells protocols apart by their first bytes, moves bytes, and drops peers
// that say nothing or do not read. What the bytes mean is up to Store and to the sessions that the
// hooks make. A bad peer loses its own connection and nothing else. Thread: everything happens on
// the loop given; hooks are called there too.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "common/endpoint.hpp"
#include "common/limits/server.hpp"
#include "common/result.hpp"
#include "rendezvous/protocol/tcpstore/tcpstore.hpp"
#include "rendezvous/server/dashboard/event_streams.hpp"
#include "rendezvous/server/http_session.hpp"
#include "rendezvous/server/session.hpp"
#include "rendezvous/store/store.hpp"

namespace boost::asio {
class io_context;
}

namespace cpprun {

struct ServerOptions {
  tcpstore::Limits store;
  // Legacy20 or Legacy21 if it is known which.
  tcpstore::Dialect legacy = tcpstore::Dialect::Legacy;
  Duration silent_peer = limits::kSilentPeerTimeout;
  size_t outbox_bytes = limits::kOutboxBytes;
  size_t connections = limits::kConnections;
};

// Each may be left empty.
struct ServerHooks {
  // A control connection on the main port; without it, or if it gives null, the connection is
  // closed.
  std::function<std::unique_ptr<Session>(Connection&)> make_control_session;
  // The store that a store client on the main port gets, asked for each; null: none is served, the
  // client is closed. Shared, because a client may outlive the round that its store belongs to.
  std::function<std::shared_ptr<Store>()> store_for_main_port;
  // The body of /status.
  std::function<std::string()> status_json;
  // What /metrics says besides what the server knows itself: whole families of Prometheus text.
  std::function<std::string()> metrics;
  // What readers of /events are to know now, and of these private topics; asked each
  // limits::kStreamTick while there is a reader. Without it there is no /events.
  std::function<std::vector<Topic>(const std::set<std::string>& private_ones)> topics;
  // The last reader is gone.
  std::function<void()> unwatched;
  // The body of /steps.
  std::function<std::string()> steps;
  // /log and what is below it.
  std::function<HttpResponse(std::string_view path, std::string_view query,
                             const std::string& peer)>
      log_page;
};

class Server {
 public:
  // `loop` outlives the server.
  Server(boost::asio::io_context& loop, ServerOptions options, ServerHooks hooks);
  ~Server();  // stop()
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  // Opens the main port: all three protocols. Numeric address, name, or "" for all interfaces; port
  // 0 takes a free one. The port taken is returned. May be called again for further addresses.
  Result<uint16_t> listen(const Endpoint& endpoint);
  // A further port for one store only, such as that of a round.
  Result<uint16_t> open_store_listener(const std::string& address, uint16_t port,
                                       std::shared_ptr<Store> store);
  // Closes it and its connections; a port that is not open is nothing to do.
  void close_store_listener(uint16_t port);
  // Closes everything at once; the loop then has no work of ours left.
  void stop();

  size_t connections() const;

 private:
  class Impl;
  std::shared_ptr<Impl> impl_;  // shared with operations that are under way
};

}  // namespace cpprun
