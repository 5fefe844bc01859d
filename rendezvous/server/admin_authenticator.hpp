// AdminAuthenticator: checks admin commands and requests for log files that arrive over TCP. The
// sender fetches a nonce and sends an HMAC made with the job's admin token. This holds for tools
// and for agents that forward a command, since any peer that reaches the port can register as an
// agent. Without a token it rejects all commands. No I/O and no clock: the control service calls
// it. A nonce is valid for one command and expires.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <utility>

#include "common/ids.hpp"
#include "common/result.hpp"
#include "common/time.hpp"
#include "rendezvous/protocol/control/control.hpp"
#include "rendezvous/server/challenge_verifier.hpp"

namespace cpprun {

class AdminAuthenticator : private ChallengeVerifier {
 public:
  using ChallengeVerifier::has_token;
  using ChallengeVerifier::open;

  // Returns the nonce for the session of a tool at `peer`, or why there is none. A tool's command
  // has the id 0.
  Result<std::string> on_admin_hello(Instant now, SessionId session, const std::string& peer,
                                     const control::AdminHello& message);
  // The same for an agent's command with this id.
  Result<std::string> on_admin_command(Instant now, SessionId session, const std::string& peer,
                                       int64_t id);
  // OK if the command's MAC is right. Uses up the nonce of the command's id.
  Status on_command(Instant now, SessionId session, const std::string& peer,
                    const control::AdminRequest& request);
  // OK if the MAC of a tool's first request for log files is right. Uses up the tool's nonce.
  Status on_log_request(Instant now, SessionId session, const std::string& peer,
                        const control::LogRequest& request);
  void on_closed(SessionId session);

 private:
  struct PendingChallenge {
    std::string nonce;
    std::string peer;
    Instant at;
  };

  void forget_old(Instant now);
  // OK if `mac` is right for what mac_input() makes of the nonce of `id`, which is used up. `what`
  // names the request in errors.
  Status check(Instant now, SessionId session, const std::string& peer, int64_t id,
               const std::string& what, const std::string& mac,
               const std::function<std::string(const std::string& nonce)>& mac_input);

  // By connection and id of the command.
  std::map<std::pair<SessionId, int64_t>, PendingChallenge> pending_challenges_;
};

}  // namespace cpprun
