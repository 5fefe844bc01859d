// The rendezvous server: serves torch's TCPStore protocol, cpprun's control protocol and HTTP on
// each main port. It accepts connections, detects their protocol by the first bytes, moves bytes,
// and drops peers that stay silent or do not read. Store and the sessions made by the hooks
// interpret the bytes. A bad peer loses its own connection and nothing else. Thread: everything,
// including the hooks, runs on the given loop.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "common/endpoint.hpp"
#include "common/limits/server.hpp"
#include "common/limits/tls.hpp"
#include "common/machine/unique_fd.hpp"
#include "common/result.hpp"
#include "common/tls/job_tls.hpp"
#include "rendezvous/observe/prometheus.hpp"
#include "rendezvous/protocol/tcpstore/tcpstore.hpp"
#include "rendezvous/server/dashboard/event_streams.hpp"
#include "rendezvous/server/http_session.hpp"
#include "rendezvous/server/session.hpp"
#include "rendezvous/store/store.hpp"

namespace boost::asio {
class io_context;
}

namespace cpprun {

// ServerOptions::memory_bytes where the user sets nothing: a part of the memory that this process
// may use. Reads /proc and /sys.
size_t default_memory_bytes();

struct ServerOptions {
  tcpstore::Limits store;
  Duration silent_peer = limits::kSilentPeerTimeout;
  // From the last byte of a command that has begun.
  Duration stalled_command = limits::kStalledCommandTimeout;
  size_t outbox_bytes = limits::kOutboxBytes;
  // Of all stores that make_store() makes, and of the connections' buffers.
  size_t memory_bytes = SIZE_MAX;
  size_t connections = limits::kConnections;
  size_t tls_handshakes = limits::kTlsHandshakesAtOnce;
  // Names by which HTTP clients may ask, beside addresses, the names of this machine, and those
  // that listen() gets.
  std::vector<std::string> host_names{};
  // Control connections must be encrypted by it; null: they are plain.
  std::shared_ptr<const JobTls> tls{};
};

// Each may be empty.
struct ServerHooks {
  // Makes the session of a control connection on the main port. Empty, or it returns null: the
  // server closes the connection.
  std::function<std::unique_ptr<Session>(Connection&)> make_control_session;
  // The store for a new store client on the main port; null: the server rejects the client. Shared,
  // because a client may outlive the round of its store.
  std::function<std::shared_ptr<Store>()> store_for_main_port;
  // Whether this client may use the store of the port that it has connected to: 0 is the main port.
  // Empty: all may.
  std::function<bool(const Connection&, uint16_t port)> may_use_store;
  // The body of /status.
  std::function<std::string()> status_json;
  // Further families for /metrics.
  std::function<std::string(prometheus::Format)> metrics;
  // The public topics and these private topics for the readers of /events; called each
  // limits::kStreamTick while there is a reader. Empty: no /events.
  std::function<std::vector<Topic>(const std::set<std::string>& private_ones)> topics;
  // The last reader of /events is gone.
  std::function<void()> unwatched;
  // The body of /steps.
  std::function<std::string()> steps;
  // /log and /log/nonce.
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

  // Opens a main port: all three protocols. Host: numeric address, name, or "" for all interfaces;
  // port 0 takes a free one. Returns the port. May be called again for further addresses.
  Result<uint16_t> listen(const Endpoint& endpoint);
  // A further port that serves one store only, such as that of a round.
  Result<uint16_t> open_store_listener(const std::string& address, uint16_t port,
                                       std::shared_ptr<Store> store);
  // Closes the port and its connections. No effect if it is not open.
  void close_store_listener(uint16_t port);
  // Serves a client in this process on `end`, one end of a connected_pair(), as if it had connected
  // to the main port. `address` counts as its address and as ours. On the loop's thread, after
  // listen().
  void adopt(UniqueFd end, const std::string& address);
  // Closes everything at once; no work of the server is left on the loop.
  void stop();

  size_t connections() const;
  // An empty store that shares the server's memory budget.
  std::shared_ptr<Store> make_store() const;

 private:
  class Impl;
  std::shared_ptr<Impl> impl_;  // shared with pending operations
};

}  // namespace cpprun
