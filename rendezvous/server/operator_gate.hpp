// OperatorGate: who may give orders over TCP. A tool asks, gets a nonce, and shows by its proof
// that it knows the job's token; the token itself never travels. Without a token nobody may.
//
// No I/O and no clock: the control service calls it. Whoever was wrong has to wait before another
// try from the same address; nonces are for one proof and grow old.
#pragma once

#include <functional>
#include <map>
#include <string>

#include "common/ids.hpp"
#include "common/result.hpp"
#include "common/time.hpp"
#include "rendezvous/protocol/control.hpp"

namespace cpprun {

class OperatorGate {
 public:
  // Random and never the same.
  using MakeNonce = std::function<std::string()>;

  // From now on who knows this token may. One that can be guessed is no token: then, and with an
  // empty one, nobody may.
  void open(std::string token, MakeNonce make_nonce);

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

  std::string token_;
  MakeNonce make_nonce_;
  std::map<SessionId, Asked> asked_;
  std::map<std::string, Instant> wrong_;  // addresses of who had no proof, and when
};

}  // namespace cpprun
