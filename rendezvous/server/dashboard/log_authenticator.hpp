// LogAuthenticator: who may read workers' log lines over HTTP. A page asks for a nonce, and shows
// by its mac that who sits before it knows the job's operator token. Without a token nobody may:
// what programs print may be as secret as what they read.
//
// No I/O and no clock: Dashboard service calls it. A nonce is for one mac and grows old.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "common/result.hpp"
#include "common/time.hpp"
#include "rendezvous/coordinator/coordinator.hpp"
#include "rendezvous/server/challenge_verifier.hpp"

namespace cpprun {

class LogAuthenticator {
 public:
  // As ChallengeVerifier::open().
  void open(std::string token, ChallengeVerifier::MakeNonce make_nonce) {
    verifier_.open(std::move(token), std::move(make_nonce));
  }

  // A nonce for `peer`; or why it gets none.
  Result<std::string> on_nonce(Instant now, const std::string& peer);
  // Whose lines may be read, of the query `job=RUN_ID&rank=N&nonce=…&mac=…`. The nonce is used
  // up. Error: Refused if the mac is wrong, BadValue if there is none to look at.
  Result<JobRank> on_query(Instant now, const std::string& peer, std::string_view query);

 private:
  void forget_old(Instant now);

  ChallengeVerifier verifier_;
  std::map<std::string, Instant> nonces_;  // that wait for their mac, and since when
};

// What a mac is of (HMAC-SHA256 with the token).
std::string log_mac_input(const std::string& nonce, const JobRank& wanted);

// "a=b&c=%20d" by name; what is no such thing is left out.
std::map<std::string, std::string> query_parameters(std::string_view query);

}  // namespace cpprun
