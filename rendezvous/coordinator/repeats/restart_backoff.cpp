#include "rendezvous/coordinator/repeats/restart_backoff.hpp"

#include <algorithm>

#include "common/limits/rendezvous.hpp"
#include "common/text.hpp"

namespace cpprun {

using control::StopCause;

Duration restart_delay(Duration first, int64_t restarts) {
  if (restarts < 2) return {};
  const int64_t doublings = std::min<int64_t>(restarts - 2, limits::kRestartBackoffDoublings);
  return std::min(first * (int64_t{1} << doublings), limits::kRestartBackoffMax);
}

// The age of a round that another coordinator has formed is not known, so it changes no count.
void RestartBackoff::on_round_over(Instant now, StopCause cause, const JobProgress& made,
                                   control::PastFailures& past) {
  if (first_ == Duration{}) return;
  if (control::is_requested(cause)) past.quick = 0;
  if (cause != StopCause::Failure && cause != StopCause::NodeLost) return;
  if (formed_at_) {
    const bool is_quick = now - *formed_at_ < limits::kQuickRound;
    past.quick = is_quick && !has_progressed(made, past) ? past.quick + 1 : 0;
  }
  restarts_ = past.quick;
  delay_ = restart_delay(first_, restarts_);
  if (delay_ > Duration{}) until_ = now + delay_;
}

std::string RestartBackoff::text() const {
  const bool is_whole = delay_ % std::chrono::seconds(1) == Duration{};
  return text::seconds(delay_, is_whole ? 0 : 1) + " before the next round, because " +
         std::to_string(restarts_) + " rounds in a row failed within " +
         text::seconds(limits::kQuickRound, 0) + " and without progress (--restart-backoff)";
}

}  // namespace cpprun
