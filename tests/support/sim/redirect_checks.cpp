#include "tests/support/sim/redirect_checks.hpp"

namespace cpprun::sim {

void RedirectChecks::on_message(ConnectionId connection, const control::Hello& from, const Job* job,
                                const control::AgentMessage& message) {
  const bool is_here = job != nullptr && !job->is_over();
  if (std::holds_alternative<control::AnnounceLeader>(message)) {
    leader_announcers_.insert(connection);
    announced_by_[from.run_id] = connection;
    keeps_its_job_ = is_here && !has_no_memory(*job);
  } else if (std::holds_alternative<control::Register>(message)) {
    if (!is_here && announced_by_.contains(from.run_id)) redirected_.insert(connection);
  }
}

void RedirectChecks::on_sent(ConnectionId connection, Incarnation to,
                             const control::CoordinatorMessage& message) {
  const bool is_led_by_standby = std::holds_alternative<control::Redirect>(message);
  const bool is_refused = std::holds_alternative<control::Refused>(message);
  const bool is_taken_in = !is_led_by_standby && !is_refused && redirected_.contains(connection);
  const bool is_given_away =
      is_led_by_standby && keeps_its_job_ && !leader_announcers_.contains(connection);
  if (!is_taken_in && !is_given_away) return;
  checks_.require(false, "R17: node " + std::to_string(to.value) +
                             (is_taken_in ? " is taken in, though the job is led elsewhere"
                                          : " is sent away by a coordinator that leads its job"));
}

void RedirectChecks::on_ended(ConnectionId connection) {
  leader_announcers_.erase(connection);
  redirected_.erase(connection);
  std::erase_if(announced_by_, [&](const auto& entry) { return entry.second == connection; });
}

}  // namespace cpprun::sim
