// Server::Impl: the table of connections and their shared state. Internal to rendezvous/server. No
// Asio here.
//
// Invariants:
//   1. A connection is in table_ until it is Dead; Dead ones wait in closed_connections_ for the
//      end of the batch.
//   2. Outside of a batch dirty_ is empty, or a settling is posted to the loop.
//   3. One timer for all connections; it runs only while one is watched (handshake or command
//      incomplete, or lingering).
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <unordered_map>
#include <vector>

#include "common/check.hpp"
#include "rendezvous/protocol/sniff.hpp"
#include "rendezvous/server/connection.hpp"
#include "rendezvous/server/host_check.hpp"
#include "rendezvous/server/http_session.hpp"
#include "rendezvous/server/listener.hpp"
#include "rendezvous/server/server.hpp"
#include "rendezvous/server/store_session.hpp"

namespace cpprun {

class OneShotTimer;

class Server::Impl final : public ConnectionHost,
                           public ReplySink,
                           public HttpPages,
                           public std::enable_shared_from_this<Impl> {
 public:
  Impl(boost::asio::io_context& loop, const ServerOptions& options, ServerHooks hooks);
  ~Impl() override;

  Result<uint16_t> listen(const Endpoint& endpoint, std::shared_ptr<Store> store);
  void close_store_listener(uint16_t port);
  void adopt(UniqueFd end, const std::string& address);
  void stop();
  size_t connections() const { return table_.size(); }
  std::shared_ptr<Store> make_store() const { return std::make_shared<Store>(memory_budget_); }

  // ConnectionHost
  std::unique_ptr<Session> make_session(TcpConnection& connection, std::span<const uint8_t> bytes,
                                        bool& needs_more) override;
  void begin_batch() override { ++batch_depth_; }
  void end_batch() override;
  void schedule_read(TcpConnection& connection) override;
  void on_dirty(TcpConnection& connection) override;
  void on_lingering(TcpConnection& connection) override {
    watch(connection.id(), options_.silent_peer);
  }
  void on_dead(TcpConnection& connection) override;
  size_t outbox_limit() const override { return options_.outbox_bytes; }
  void on_incomplete(TcpConnection& connection) override;
  StringPool& string_pool() override { return string_pool_; }
  const std::shared_ptr<MemoryBudget>& memory_budget() const override { return memory_budget_; }
  PeerLog& peer_log() override { return peer_log_; }

  // ReplySink
  void reply_byte(SessionId to, uint8_t value) override;
  void reply_number(SessionId to, int64_t value) override;
  void reply_nonce(SessionId to, uint32_t value) override;
  void reply_bytes(SessionId to, std::string_view value) override;
  void reply_value(SessionId to, const Value& value) override;
  void refuse(SessionId to, std::string_view why) override;

  // HttpPages
  HttpResponse page(const HttpRequest& request) override;
  bool is_own_name(std::string_view host) const override { return host_check_.allows(host); }
  bool stream_began(Connection& connection, const std::string& topic) override;
  void stream_ended(SessionId id) override;

 private:
  using Clock = std::chrono::steady_clock;
  struct ListenPort {
    uint16_t port = 0;
    std::shared_ptr<Store> store;  // null: the main port
    std::vector<std::shared_ptr<Listener>> listeners;
  };
  void on_accept(int listen_port, int fd, const sockaddr_storage& peer);
  // Owns `fd` from then on.
  void add_connection(int listen_port, int fd, TcpConnection::Peer peer);
  std::unique_ptr<Session> make_store_session(TcpConnection& connection, tcpstore::Dialect dialect);
  std::unique_ptr<Session> make_control_session(TcpConnection& connection);
  // Whether the connection is encrypted now.
  bool begin_tls(TcpConnection& connection);
  void refuse_plain(TcpConnection& connection);
  // Closes those that `listen_port` accepted (empty: all), in the order of their ids.
  void abort_connections(std::optional<int> listen_port);
  void settle();
  TcpConnection* find(SessionId id);
  template <class T>
  void reply(SessionId to, void (*encode)(std::string&, T), T value);
  void watch(SessionId id, Duration limit);
  void on_expired(TcpConnection& connection, Clock::time_point now);
  void forget_identified_connections();
  void arm();
  void on_time();
  bool keep_as_companion(TcpConnection& silent);
  void forget_legacy(const TcpConnection& connection);
  void tick_streams();
  std::string metrics(prometheus::Format format) const;
  std::vector<std::shared_ptr<Store>> stores() const;

  boost::asio::io_context& loop_;
  ServerOptions options_;
  ServerHooks hooks_;
  HostCheck host_check_;
  std::unordered_map<int, ListenPort> listen_ports_;
  int next_listen_port_ = 0;
  StringPool string_pool_;
  std::shared_ptr<MemoryBudget> memory_budget_;  // shared: values may outlive the server
  PeerLog peer_log_;
  // Each handshake under way holds a copy, so use_count() bounds them.
  const std::shared_ptr<const int> handshakes_ = std::make_shared<const int>(0);
  std::unordered_map<uint64_t, std::shared_ptr<TcpConnection>> table_;
  std::vector<std::shared_ptr<TcpConnection>> closed_connections_;
  std::vector<TcpConnection*> dirty_;
  // To read from after all others had their turn.
  std::vector<std::shared_ptr<TcpConnection>> later_;
  // The part of later_ that is being processed.
  std::vector<std::shared_ptr<TcpConnection>> later_now_;
  // Last result of find(): most replies go to the sender of the current command.
  TcpConnection* latest_ = nullptr;
  uint64_t next_id_ = 1;
  int batch_depth_ = 0;  // nesting depth
  bool is_settling_posted_ = false;
  bool is_stopped_ = false;
  struct LegacyPeer {
    size_t clients = 0;
    size_t companions = 0;
  };
  // By address: torch 2.0 or 2.1 runs there.
  std::map<std::string, LegacyPeer> legacy_peers_;
  std::multimap<Clock::time_point, SessionId> watched_;  // by the time of the next check
  std::unique_ptr<OneShotTimer> alarm_;
  EventStreams streams_;
  std::unique_ptr<OneShotTimer> stream_alarm_;  // runs only while /events has readers
  uint64_t accepted_ = 0;
  uint64_t dropped_ = 0;  // silent for too long, or above a limit
  CommandCounts counts_{};
};

}  // namespace cpprun
