// StoreSession: one TCPStore client on one connection, with the parser in front of the store.
// RejectingSession: replies where no store is served, or not to this client.
//
// No Asio. Thread: the server's loop.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>

#include "rendezvous/protocol/tcpstore/tcpstore.hpp"
#include "rendezvous/server/peer_log.hpp"
#include "rendezvous/server/session.hpp"
#include "rendezvous/store/store.hpp"

namespace cpprun {

using CommandCounts = std::array<uint64_t, tcpstore::kOps>;

class StoreSession final : public Session {
 public:
  // All references outlive the session.
  StoreSession(Connection& connection, std::shared_ptr<Store> store, ReplySink& sink,
               CommandCounts& counts, tcpstore::Dialect dialect, const tcpstore::Limits& limits,
               PeerLog& peer_log);
  size_t on_bytes(std::span<const uint8_t> bytes) override;
  size_t wants() const override { return wants_; }
  std::string describe(std::span<const uint8_t> bytes) const override;
  void on_closed(CloseKind kind) override;

 private:
  Connection& connection_;
  std::shared_ptr<Store> store_;  // shared with the other sessions and the port's owner
  ReplySink& sink_;
  CommandCounts& counts_;
  tcpstore::Parser parser_;
  PeerLog& peer_log_;
  size_t wants_ = 1;
};

// Replies to PING, so that torch's connect succeeds, and closes at the first real command with a
// log line about the client. A client that is closed earlier would retry until its own timeout,
// minutes later.
class RejectingSession final : public Session {
 public:
  // `logs_reason`: false if the log has the reason already.
  RejectingSession(Connection& connection, tcpstore::Dialect dialect,
                   const tcpstore::Limits& limits, PeerLog& peer_log, bool logs_reason);
  size_t on_bytes(std::span<const uint8_t> bytes) override;
  size_t wants() const override { return wants_; }
  void on_closed(CloseKind) override {}

 private:
  Connection& connection_;
  tcpstore::Parser parser_;
  PeerLog& peer_log_;
  const bool logs_reason_;
  size_t wants_ = 1;
};

}  // namespace cpprun
