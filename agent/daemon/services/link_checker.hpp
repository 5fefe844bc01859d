// LinkChecker: checks the network links between this node and other nodes of the job
// (--link-check), on both sides: it answers other agents at a port of its own, and checks the link
// to another node when the coordinator asks for it (CheckLink).
//
// The loop never waits for the network: each check, and each answer, has a thread of its own.
// Thread: the loop's. Owner: the daemon.
#pragma once

#include <boost/asio/io_context.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "agent/core/config.hpp"
#include "agent/daemon/snapshots/peer_listener.hpp"
#include "common/loop/background_work.hpp"
#include "rendezvous/protocol/control/control.hpp"

namespace cpprun {

class LinkChecker {
 public:
  using Send = std::function<void(const control::LinkResult&)>;

  // `config` must outlive this object.
  LinkChecker(boost::asio::io_context& loop, const AgentConfig& config, Send send);
  ~LinkChecker();

  // Opens the port on `address` ("": every interface), unless it is open there; returns it. 0:
  // without --link-check, or after a failure.
  uint16_t serve(const std::string& address);
  // Other agents must send it; "" until the port is open.
  const std::string& secret() const { return secret_; }
  void on_message(const control::CoordinatorMessage& message);

 private:
  const AgentConfig& config_;
  const Send send_;
  std::string secret_;
  BackgroundWork background_;
  std::shared_ptr<CancelToken> cancel_token_;  // shared with the threads; null: no check was made
  std::string served_at_;
  std::unique_ptr<PeerListener> listener_;
};

// Exchanges `check.bytes` with the peer. Blocks, at most for limits::kLinkCheckTimeout.
// `tls`: null: the connection is plain.
control::LinkResult check_link(const control::CheckLink& check, const JobTls* tls,
                               std::shared_ptr<const CancelToken> cancel_token);

}  // namespace cpprun
