// ChallengeVerifier: checks that a peer knows the job's admin token. The peer gets a nonce and
// returns an HMAC; the token itself never travels. Base of the authenticators (admin commands, log
// lines), which keep the nonces that they issued. No I/O and no clock. After a wrong MAC,
// an address must wait before its next attempt.
#pragma once

#include <algorithm>
#include <cstddef>
#include <functional>
#include <map>
#include <string>

#include "common/result.hpp"
#include "common/time.hpp"

namespace cpprun {

class ChallengeVerifier {
 public:
  // Returns a random value, never the same twice.
  using MakeNonce = std::function<std::string()>;

  // Accepts this token from now on. With an empty token, or one short enough to guess, the
  // authenticators reject everybody.
  void open(std::string token, MakeNonce make_nonce);

  static Error refuse(const std::string& why) { return Error{ErrorKind::Refused, why}; }

  bool has_token() const { return !token_.empty(); }
  bool can_be_guessed() const;

  // How many nonces are issued and unused.
  struct Pending {
    size_t all = 0;
    size_t of_peer = 0;
  };
  // Of a map to issued nonces, each with its `peer`.
  template <typename Issued>
  static Pending pending_of(const Issued& issued, const std::string& peer) {
    const auto is_of_peer = [&](const auto& entry) { return entry.second.peer == peer; };
    return {issued.size(), static_cast<size_t>(std::ranges::count_if(issued, is_of_peer))};
  }
  // Returns a nonce for `peer`. Error: Refused.
  Result<std::string> nonce_for(Instant now, const std::string& peer, Pending pending);
  // True if `mac` is the HMAC of `words` with the token. Remembers a failure of `peer`.
  bool accepts(Instant now, const std::string& peer, const std::string& words,
               const std::string& mac);

 private:
  std::string token_;
  MakeNonce make_nonce_;
  std::map<std::string, Instant> wrong_;  // last wrong MAC by address
};

}  // namespace cpprun
