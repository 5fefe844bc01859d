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
  Result<std::string> nonce = nonce_for(now, peer, pending_of(pending_challenges_, peer));
  if (nonce) pending_challenges_[{session, id}] = PendingChallenge{*nonce, peer, now};
  return nonce;
}

Status AdminAuthenticator::check(
    Instant now, SessionId session, const std::string& peer, int64_t id, const std::string& what,
    const std::string& mac, const std::function<std::string(const std::string& nonce)>& mac_input) {
  forget_old(now);
  const auto asked = pending_challenges_.extract({session, id});
  if (asked.empty()) return refuse(what + " a nonce that was requested just before");
  if (accepts(now, peer, mac_input(asked.mapped().nonce), mac)) return {};
  return refuse("the token is wrong: CPPRUN_ADMIN_TOKEN must be what the coordinator has");
}

Status AdminAuthenticator::on_command(Instant now, SessionId session, const std::string& peer,
                                      const control::AdminRequest& request) {
  const auto input = [&](const std::string& nonce) {
    return control::admin_mac_input(nonce, request);
  };
  return check(now, session, peer, request.command.id, "an admin command needs", request.mac,
               input);
}

Status AdminAuthenticator::on_log_request(Instant now, SessionId session, const std::string& peer,
                                          const control::LogRequest& request) {
  const auto input = [&](const std::string& nonce) {
    return control::log_request_mac_input(nonce, request.run_id);
  };
  return check(now, session, peer, 0, "log files need", request.mac, input);
}

void AdminAuthenticator::on_closed(SessionId session) {
  std::erase_if(pending_challenges_,
                [&](const auto& entry) { return entry.first.first == session; });
}

}  // namespace cpprun
