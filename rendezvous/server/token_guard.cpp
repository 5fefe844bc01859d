#include "rendezvous/server/token_guard.hpp"

#include <utility>

#include "common/limits/operators.hpp"
#include "common/proof/proof.hpp"

namespace cpprun {

void TokenGuard::open(std::string token, MakeNonce make_nonce) {
  token_ = std::move(token);
  make_nonce_ = std::move(make_nonce);
}

bool TokenGuard::can_be_guessed() const {
  return token_.size() < limits::kOrderTokenBytes;
}

Result<std::string> TokenGuard::nonce_for(Instant now, const std::string& peer, size_t waiting) {
  std::erase_if(wrong_,
                [&](const auto& entry) { return now - entry.second >= limits::kOrderAfterWrong; });
  if (wrong_.contains(peer) || wrong_.size() >= limits::kOrdersWrong) {
    return Error{ErrorKind::Refused,
                 "a wrong token came from there just now; try again in a second"};
  }
  if (waiting >= limits::kOrdersAsked) {
    return Error{ErrorKind::Refused, "too many ask at once; try again"};
  }
  return make_nonce_();
}

bool TokenGuard::accepts(Instant now, const std::string& peer, const std::string& words,
                         const std::string& proof) {
  if (is_proof(token_, words, proof)) return true;
  wrong_[peer] = now;
  return false;
}

}  // namespace cpprun
