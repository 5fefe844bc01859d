#include "rendezvous/server/admin_authenticator.hpp"

#include <utility>

#include "common/limits/admin.hpp"
#include "common/version.hpp"
#include "rendezvous/protocol/admin/admin_commands.hpp"

namespace cpprun {

void AdminAuthenticator::forget_old(Instant now) {
  std::erase_if(pending_challenges_, [&](const auto& entry) {
    return now - entry.second.at > limits::kAdminNonceLifetime;
  });
}

Result<std::string> AdminAuthenticator::on_admin_hello(Instant now, SessionId session,
                                                       const std::string& peer,
                                                       const control::AdminHello& message) {
  if (message.protocol != control::kProtocolVersion) {
    return refuse("this is cpprun " + version() + " and speaks version " +
                  std::to_string(control::kProtocolVersion) +
                  " of the control protocol; use the cpprunctl of its version");
  }
  if (!has_token()) {
    return refuse(
        "the coordinator was started without CPPRUN_ADMIN_TOKEN, so nothing can be changed over "
        "TCP; use cpprunctl on a node of the job");
  }
  return on_admin_command(now, session, peer, 0);
}

Result<std::string> AdminAuthenticator::on_admin_command(Instant now, SessionId session,
                                                         const std::string& peer, int64_t id) {
  if (can_be_guessed()) {
    return refuse("the coordinator's CPPRUN_ADMIN_TOKEN has fewer than " +
                  std::to_string(limits::kAdminTokenBytes) +
                  " characters and could be guessed, so nothing can be changed by it");
  }
  forget_old(now);
  Result<std::string> nonce = nonce_for(now, peer, pending_challenges_.size());
  if (nonce) pending_challenges_[{session, id}] = PendingChallenge{*nonce, now};
  return nonce;
}

Status AdminAuthenticator::on_command(Instant now, SessionId session, const std::string& peer,
                                      const control::AdminRequest& command) {
  forget_old(now);
  const auto asked = pending_challenges_.extract({session, command.order.id});
  if (asked.empty()) return refuse("an admin command needs a nonce that was asked for just before");
  const std::string words = control::admin_mac_input(asked.mapped().nonce, command);
  if (accepts(now, peer, words, command.mac)) return {};
  return refuse("the token is wrong: CPPRUN_ADMIN_TOKEN must be what the coordinator has");
}

Status AdminAuthenticator::on_log_request(Instant now, SessionId session, const std::string& peer,
                                          const control::LogRequest& request) {
  forget_old(now);
  const auto asked = pending_challenges_.extract({session, 0});
  if (asked.empty()) return refuse("log files need a nonce that was asked for just before");
  const std::string words = control::log_request_mac_input(asked.mapped().nonce, request.run_id);
  if (accepts(now, peer, words, request.mac)) return {};
  return refuse("the token is wrong: CPPRUN_ADMIN_TOKEN must be what the coordinator has");
}

void AdminAuthenticator::on_closed(SessionId session) {
  std::erase_if(pending_challenges_,
                [&](const auto& entry) { return entry.first.first == session; });
}

}  // namespace cpprun
