// OperatorGate: who may give orders over TCP. A tool asks, gets a nonce, and shows by its proof
// that it knows the job's token. So does an agent that passes an order on: whoever reaches the port
// can register as an agent. Without a token nobody may.
//
// No I/O and no clock: the control service calls it. Nonces are for one proof and grow old.
#pragma once

#include <map>
#include <string>
#include <utility>

#include "common/ids.hpp"
#include "common/result.hpp"
#include "common/time.hpp"
#include "rendezvous/protocol/control/control.hpp"
#include "rendezvous/server/token_guard.hpp"

namespace cpprun {

class OperatorGate {
 public:
  // As TokenGuard::open().
  void open(std::string token, TokenGuard::MakeNonce make_nonce) {
    guard_.open(std::move(token), std::move(make_nonce));
  }

  // The nonce for `session`, whose other side is at `peer`; or why it gets none. A tool's order has
  // the number 0.
  Result<std::string> on_operate(Instant now, SessionId session, const std::string& peer,
                                 const control::Operate& message);
  // The same for the agent's order of this number.
  Result<std::string> on_order(Instant now, SessionId session, const std::string& peer, int64_t id);
  // May this be done? The nonce that was given out for this number is used up.
  Status on_command(Instant now, SessionId session, const std::string& peer,
                    const control::Command& command);
  void on_closed(SessionId session);

  bool has_token() const { return guard_.has_token(); }

 private:
  struct Asked {
    std::string nonce;
    Instant at;
  };

  void forget_old(Instant now);

  TokenGuard guard_;
  std::map<std::pair<SessionId, int64_t>, Asked> asked_;  // by connection and number of the order
};

}  // namespace cpprun
