#include "rendezvous/server/dashboard/log_authenticator.hpp"

#include <optional>

#include "common/limits/admin.hpp"
#include "common/limits/dashboard.hpp"
#include "common/text.hpp"

namespace cpprun {
namespace {

Error malformed(const std::string& why) { return Error{ErrorKind::BadValue, why}; }

}  // namespace

std::map<std::string, std::string> query_parameters(std::string_view query) {
  std::map<std::string, std::string> words;
  for (const std::string& part : text::split(query, '&')) {
    const size_t sign = part.find('=');
    if (sign == std::string::npos) continue;
    words[text::percent_decoded(std::string_view(part).substr(0, sign))] =
        text::percent_decoded(std::string_view(part).substr(sign + 1));
  }
  return words;
}

std::string log_mac_input(const std::string& nonce, const JobRank& wanted) {
  return "cpprun log lines\n" + nonce + "\n" + wanted.run_id + "\n" + std::to_string(wanted.rank);
}

void LogAuthenticator::forget_old(Instant now) {
  std::erase_if(nonces_,
                [&](const auto& e) { return now - e.second.at > limits::kLogNonceLifetime; });
}

Result<std::string> LogAuthenticator::on_nonce(Instant now, const std::string& peer) {
  if (can_be_guessed()) {
    return refuse(
        "log lines are shown only with the job's token, and the agent that hosts the "
        "rendezvous was started without CPPRUN_ADMIN_TOKEN (" +
        std::to_string(limits::kAdminTokenBytes) + " characters or more)");
  }
  forget_old(now);
  Result<std::string> nonce = nonce_for(now, peer, pending_of(nonces_, peer));
  if (nonce) nonces_[*nonce] = Issued{peer, now};
  return nonce;
}

Result<JobRank> LogAuthenticator::on_query(Instant now, const std::string& peer,
                                           std::string_view query) {
  forget_old(now);
  const std::map<std::string, std::string> words = query_parameters(query);
  const auto word = [&](const char* name) {
    const auto found = words.find(name);
    return found == words.end() ? std::string() : found->second;
  };
  const std::optional<int64_t> rank = text::parse_int(word("rank"));
  if (!rank || *rank < 0) return malformed("send job=RUN_ID&rank=N&nonce=NONCE&mac=MAC");
  const std::string nonce = word("nonce");
  if (nonces_.erase(nonce) == 0)
    return malformed("a nonce from /log/nonce is valid for one request");
  const JobRank wanted{word("job"), *rank};
  if (accepts(now, peer, log_mac_input(nonce, wanted), word("mac"))) return wanted;
  return refuse("the token is wrong: it must be the CPPRUN_ADMIN_TOKEN of the coordinator");
}

}  // namespace cpprun
