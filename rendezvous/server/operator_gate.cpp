#include "rendezvous/server/operator_gate.hpp"

#include <utility>

#include "common/limits/operators.hpp"
#include "common/proof/proof.hpp"
#include "rendezvous/protocol/order_proof.hpp"

namespace cpprun {
namespace {

Error refuse(const std::string& why) {
  return Error{ErrorKind::Refused, why};
}

}  // namespace

void OperatorGate::open(std::string token, MakeNonce make_nonce) {
  token_ = std::move(token);
  make_nonce_ = std::move(make_nonce);
}

void OperatorGate::forget_old(Instant now) {
  std::erase_if(
      asked_, [&](const auto& entry) { return now - entry.second.at > limits::kOrderNonceLasts; });
  std::erase_if(wrong_,
                [&](const auto& entry) { return now - entry.second >= limits::kOrderAfterWrong; });
}

Result<std::string> OperatorGate::on_operate(Instant now, SessionId session,
                                             const std::string& peer,
                                             const control::Operate& message) {
  if (message.protocol != control::kProtocolVersion) {
    return refuse("this is cpprun " CPPRUN_VERSION " and speaks version " +
                  std::to_string(control::kProtocolVersion) +
                  " of the control protocol; use the cpprunctl of its version");
  }
  if (token_.empty()) {
    return refuse(
        "the coordinator was started without CPPRUN_OPERATOR_TOKEN, so nothing can be changed over "
        "TCP; use cpprunctl on a node of the job");
  }
  if (token_.size() < limits::kOrderTokenBytes) {
    return refuse("the coordinator's CPPRUN_OPERATOR_TOKEN has fewer than " +
                  std::to_string(limits::kOrderTokenBytes) +
                  " characters and could be guessed, so nothing can be changed over TCP");
  }
  forget_old(now);
  if (wrong_.contains(peer) || wrong_.size() >= limits::kOrdersWrong) {
    return refuse("a wrong token came from there just now; try again in a second");
  }
  if (asked_.size() >= limits::kOrdersAsked) return refuse("too many ask at once; try again");
  Asked asked{make_nonce_(), now};
  return (asked_[session] = std::move(asked)).nonce;
}

Status OperatorGate::on_command(Instant now, SessionId session, const std::string& peer,
                                const control::Command& command) {
  forget_old(now);
  const auto asked = asked_.extract(session);
  if (asked.empty()) return refuse("an order needs a nonce that was asked for just before");
  const std::string words = control::proven_words(asked.mapped().nonce, command);
  if (is_proof(token_, words, command.proof)) return {};
  wrong_[peer] = now;
  return refuse("the token is wrong: CPPRUN_OPERATOR_TOKEN must be what the coordinator has");
}

}  // namespace cpprun
