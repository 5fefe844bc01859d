// JoinWait: how long this node waits for a round (--rdzv-conf=join_timeout), and what the
// coordinator has reported about the wait. A spare node waits without a limit, and so does one
// whose workers run. Pure: the caller passes the times.
#pragma once

#include <string>

#include "agent/core/effects.hpp"
#include "common/time.hpp"
#include "rendezvous/protocol/control/control.hpp"

namespace cpprun::agent {

class JoinWait {
 public:
  explicit JoinWait(Duration timeout) : timeout_(timeout) {}

  // The timeout begins anew.
  void begin(Instant now) { deadline_ = now + timeout_; }
  // The node waits for something that has a time limit of its own, or for nothing.
  void suspend() { deadline_ = Instant::never(); }

  // `has_workers`: they run. Returns what the user gets.
  LogEvent on_wait(Instant now, const control::Wait& message, bool has_workers);
  void on_assigned() { is_spare_ = false; }
  // `has_finished`: the workers of this node have finished.
  void on_disconnected(Instant now, bool has_workers, bool has_finished);

  // Instant::never(): without a limit.
  Instant deadline() const { return is_spare_ ? Instant::never() : deadline_; }
  // What a node that was in no round yet waits for.
  std::string waiting_text(bool is_connected) const;
  // Why the node gives up. `lost`, `has_finished`: as in JoinTimeout.
  std::string timeout_text(bool is_connected, const std::string& lost, bool has_finished) const;

 private:
  Duration timeout_;
  Instant deadline_ = Instant::never();
  bool is_spare_ = false;
  control::Wait last_wait_;  // the newest
};

}  // namespace cpprun::agent
