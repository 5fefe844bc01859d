#include "agent/daemon/services/election_reporter.hpp"

namespace cpprun {

void ElectionReporter::report(Instant now, bool is_led, bool would_lead) {
  const std::pair news(is_led, would_lead);
  if (reported_ == news && now - reported_at_ < heartbeat_ / 2) return;
  if (is_led) on_led();
  reported_ = news;
  reported_at_ = now;
  report_(is_led, would_lead);
}

}  // namespace cpprun
