#include "rendezvous/server/operator_gate.hpp"

#include <utility>

#include "common/limits/operators.hpp"
#include "rendezvous/protocol/admin/orders.hpp"

namespace cpprun {
namespace {

Error refuse(const std::string& why) {
  return Error{ErrorKind::Refused, why};
}

}  // namespace

void OperatorGate::forget_old(Instant now) {
  std::erase_if(
      asked_, [&](const auto& entry) { return now - entry.second.at > limits::kOrderNonceLasts; });
}

Result<std::string> OperatorGate::on_operate(Instant now, SessionId session,
                                             const std::string& peer,
                                             const control::Operate& message) {
  if (message.protocol != control::kProtocolVersion) {
    return refuse("this is cpprun " CPPRUN_VERSION " and speaks version " +
                  std::to_string(control::kProtocolVersion) +
                  " of the control protocol; use the cpprunctl of its version");
  }
  if (!guard_.has_token()) {
    return refuse(
        "the coordinator was started without CPPRUN_OPERATOR_TOKEN, so nothing can be changed over "
        "TCP; use cpprunctl on a node of the job");
  }
  return on_order(now, session, peer, 0);
}

Result<std::string> OperatorGate::on_order(Instant now, SessionId session, const std::string& peer,
                                           int64_t id) {
  if (guard_.can_be_guessed()) {
    return refuse("the coordinator's CPPRUN_OPERATOR_TOKEN has fewer than " +
                  std::to_string(limits::kOrderTokenBytes) +
                  " characters and could be guessed, so nothing can be changed by it");
  }
  forget_old(now);
  Result<std::string> nonce = guard_.nonce_for(now, peer, asked_.size());
  if (nonce) asked_[{session, id}] = Asked{*nonce, now};
  return nonce;
}

Status OperatorGate::on_command(Instant now, SessionId session, const std::string& peer,
                                const control::Command& command) {
  forget_old(now);
  const auto asked = asked_.extract({session, command.order.id});
  if (asked.empty()) return refuse("an order needs a nonce that was asked for just before");
  const std::string words = control::proven_words(asked.mapped().nonce, command);
  if (guard_.accepts(now, peer, words, command.proof)) return {};
  return refuse("the token is wrong: CPPRUN_OPERATOR_TOKEN must be what the coordinator has");
}

void OperatorGate::on_closed(SessionId session) {
  std::erase_if(asked_, [&](const auto& entry) { return entry.first.first == session; });
}

}  // namespace cpprun
