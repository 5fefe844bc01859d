#include "rendezvous/server/coordinator_environment.hpp"

#include <sys/resource.h>

#include <chrono>
#include <string>

#include "common/machine/identity.hpp"
#include "common/proof/hmac.hpp"
#include "common/proof/node_id.hpp"

namespace cpprun {

namespace {

Term term_now() {
  auto since_1970 = std::chrono::system_clock::now().time_since_epoch();
  return Term(std::chrono::duration_cast<std::chrono::milliseconds>(since_1970).count());
}

// Each text has its length before it, so that no two announcements give the same words.
std::string words_of(const std::string& run_id, const control::AnnounceLeader& message) {
  const auto sized = [](const std::string& text) {
    return std::to_string(text.size()) + ":" + text + "\n";
  };
  return "cpprun-leader-1\n" + sized(run_id) + sized(message.address) +
         std::to_string(message.term.value) + " " + std::to_string(message.port) + "\n";
}

}  // namespace

std::string mac_of_leader(const std::string& job_key, const std::string& run_id,
                          const control::AnnounceLeader& message) {
  return hmac_of(job_key, words_of(run_id, message));
}

std::string random_secret() { return random_hex(); }

CoordinatorOptions coordinator_options() {
  CoordinatorOptions options;
  options.host = own_host_name();
  options.term = term_now();
  options.make_secret = random_secret;
  options.node_id_of = node_id_of;
  options.needs_admin_token = !admin_token().empty();
  options.is_leader_of = [](const std::string& job_key, const std::string& run_id,
                            const control::AnnounceLeader& message) {
    return verify_hmac(job_key, words_of(run_id, message), message.mac);
  };
  return options;
}

void raise_descriptor_limit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

}  // namespace cpprun
