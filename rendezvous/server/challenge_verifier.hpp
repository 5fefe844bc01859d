// ChallengeVerifier: whether someone at another address knows the job's operator token. Who wants
// something gets a nonce and shows by its proof that it does; the token itself never travels.
// Private to the gates, each of which has one of its own and keeps the nonces that it gave out.
//
// No I/O and no clock. Whoever was wrong has to wait before another try from the same address.
#pragma once

#include <functional>
#include <map>
#include <string>

#include "common/result.hpp"
#include "common/time.hpp"

namespace cpprun {

class ChallengeVerifier {
 public:
  // Random and never the same.
  using MakeNonce = std::function<std::string()>;

  // From now on who knows this token may. One that can be guessed is no token: then, and with an
  // empty one, nobody may.
  void open(std::string token, MakeNonce make_nonce);

  bool has_token() const { return !token_.empty(); }
  bool can_be_guessed() const;

  // A nonce for `peer`, while `waiting` others have theirs and still owe a proof. Error: Refused.
  Result<std::string> nonce_for(Instant now, const std::string& peer, size_t waiting);
  // May who is at `peer`, by its proof of these words? Remembers if not.
  bool accepts(Instant now, const std::string& peer, const std::string& words,
               const std::string& mac);

 private:
  std::string token_;
  MakeNonce make_nonce_;
  std::map<std::string, Instant> wrong_;  // addresses of who had no proof, and when
};

}  // namespace cpprun
