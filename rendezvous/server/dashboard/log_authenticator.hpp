// LogAuthenticator: checks requests for workers' log lines over HTTP. Challenge-response: the page
// fetches a nonce and sends HMAC(token, nonce and request). Without a token it rejects all
// requests, since the output of programs may be secret. No I/O and no clock: DashboardService calls
// it. A nonce is valid for one request and expires.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "common/result.hpp"
#include "common/time.hpp"
#include "rendezvous/coordinator/coordinator.hpp"
#include "rendezvous/server/challenge_verifier.hpp"

namespace cpprun {

class LogAuthenticator : private ChallengeVerifier {
 public:
  using ChallengeVerifier::open;

  // Returns a nonce for `peer`, or why there is none.
  Result<std::string> on_nonce(Instant now, const std::string& peer);
  // Returns the rank whose lines the query `job=RUN_ID&rank=N&nonce=…&mac=…` may read. Uses up the
  // nonce. Error: Refused if the MAC is wrong, BadValue if the query is malformed.
  Result<JobRank> on_query(Instant now, const std::string& peer, std::string_view query);

 private:
  void forget_old(Instant now);

  struct Issued {
    std::string peer;
    Instant at;
  };

  std::map<std::string, Issued> nonces_;  // issued and unused
};

// The input of the MAC (HMAC-SHA256 with the token).
std::string log_mac_input(const std::string& nonce, const JobRank& wanted);

// Parses "a=b&c=%20d"; skips malformed parts.
std::map<std::string, std::string> query_parameters(std::string_view query);

}  // namespace cpprun
