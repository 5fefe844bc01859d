#include "agent/daemon/services/failure_notice.hpp"

#include <algorithm>

#include "common/http/http_post.hpp"
#include "common/limits/notice.hpp"
#include "common/log/log.hpp"
#include "common/thread/io_thread.hpp"

namespace cpprun {

void send_failure_notice(const std::string& url, const std::string& json) {
  if (url.empty() || json.empty()) return;
  Result<Url> parsed = parse_url(url);
  if (!parsed) return log::warning("no notice was sent: " + parsed.error().text);
  // A thread of its own: a resolver may not answer.
  IoThread sender;
  const auto sent = sender.result_of(
      [to = *parsed, json] {
        const Status ok = http_post_with_retries(to, json);
        return ok ? std::string() : ok.error().text;
      },
      limits::kNoticeTimeout);
  if (!sent) return log::warning("no notice was sent in time to " + to_string(parsed->endpoint));
  if (!sent->empty()) log::warning("no notice was sent: " + *sent);
}

bool sends_for_job(bool hosts, const control::RankAssignment& newest) {
  const bool was_beside_it =
      newest.round > RoundNumber() && newest.group_rank == std::max<int64_t>(0, newest.host_rank);
  return hosts || was_beside_it;
}

}  // namespace cpprun
