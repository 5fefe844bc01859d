#include "rendezvous/server/challenge_verifier.hpp"

#include <utility>

#include "common/limits/admin.hpp"
#include "common/proof/hmac.hpp"

namespace cpprun {

void ChallengeVerifier::open(std::string token, MakeNonce make_nonce) {
  token_ = std::move(token);
  make_nonce_ = std::move(make_nonce);
}

bool ChallengeVerifier::can_be_guessed() const { return token_.size() < limits::kAdminTokenBytes; }

Result<std::string> ChallengeVerifier::nonce_for(Instant now, const std::string& peer,
                                                 Pending pending) {
  std::erase_if(
      wrong_, [&](const auto& entry) { return now - entry.second >= limits::kAdminFailureDelay; });
  if (wrong_.contains(peer) || wrong_.size() >= limits::kAdminFailuresKept) {
    return refuse("a wrong token came from there just now; try again in a second");
  }
  if (pending.all >= limits::kAdminChallengesPending ||
      pending.of_peer >= limits::kAdminChallengesOfPeer) {
    return refuse("too many ask at once; try again");
  }
  return make_nonce_();
}

bool ChallengeVerifier::accepts(Instant now, const std::string& peer, const std::string& words,
                                const std::string& mac) {
  if (verify_hmac(token_, words, mac)) return true;
  wrong_[peer] = now;
  return false;
}

}  // namespace cpprun
