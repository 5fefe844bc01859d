// OperatorGate: who may give orders over TCP. A tool asks, gets a nonce, and shows by its proof
// that it knows the job's token. Without a token nobody may.
//
// No I/O and no clock: the control service calls it. Nonces are for one proof and grow old.
#pragma once

#include <map>
#include <string>
#include <utility>

#include "common/ids.hpp"
#include "common/result.hpp"
#include "common/time.hpp"
#include "rendezvous/protocol/control.hpp"
#include "rendezvous/server/token_guard.hpp"

namespace cpprun {

class OperatorGate {
 public:
  // As TokenGuard::open().
  void open(std::string token, TokenGuard::MakeNonce make_nonce) {
    guard_.open(std::move(token), std::move(make_nonce));
  }

  // The nonce for `session`, whose other side is at `peer`; or why it gets none.
  Result<std::string> on_operate(Instant now, SessionId session, const std::string& peer,
                                 const control::Operate& message);
  // May this be done? The nonce is used up.
  Status on_command(Instant now, SessionId session, const std::string& peer,
                    const control::Command& command);
  void on_closed(SessionId session) { asked_.erase(session); }

 private:
  struct Asked {
    std::string nonce;
    Instant at;
  };

  void forget_old(Instant now);

  TokenGuard guard_;
  std::map<SessionId, Asked> asked_;
};

}  // namespace cpprun
