// AdminAuthenticator: who may give admin commands over TCP. A tool asks, gets a nonce, and shows by
// its proof that it knows the job's token. So does an agent that passes an order on: whoever
// reaches the port can register as an agent. Without a token nobody may.
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
#include "rendezvous/server/challenge_verifier.hpp"

namespace cpprun {

class AdminAuthenticator {
 public:
  // As ChallengeVerifier::open().
  void open(std::string token, ChallengeVerifier::MakeNonce make_nonce) {
    verifier_.open(std::move(token), std::move(make_nonce));
  }

  // The nonce for `session`, whose other side is at `peer`; or why it gets none. A tool's order has
  // the number 0.
  Result<std::string> on_admin_hello(Instant now, SessionId session, const std::string& peer,
                                     const control::AdminHello& message);
  // The same for the agent's order of this number.
  Result<std::string> on_admin_command(Instant now, SessionId session, const std::string& peer,
                                       int64_t id);
  // May this be done? The nonce that was given out for this number is used up.
  Status on_command(Instant now, SessionId session, const std::string& peer,
                    const control::AdminRequest& command);
  void on_closed(SessionId session);

  bool has_token() const { return verifier_.has_token(); }

 private:
  struct PendingChallenge {
    std::string nonce;
    Instant at;
  };

  void forget_old(Instant now);

  ChallengeVerifier verifier_;
  // By connection and number of the order.
  std::map<std::pair<SessionId, int64_t>, PendingChallenge> pending_challenges_;
};

}  // namespace cpprun
