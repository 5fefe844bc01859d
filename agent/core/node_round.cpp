#include "agent/core/node_round.hpp"

#include <utility>

#include "agent/core/restart_budget.hpp"

namespace cpprun::agent {

void NodeRound::begin(const control::RankAssignment& assignment, Incarnation own) {
  assignment_ = assignment;
  exits_.begin_round();
  is_standby_ = assignment_.standby && assignment_.standby->node == own;
  is_drained_ = false;
  fell_back_ = false;
  charged_ = control::RestartCharge::None;
  lost_.clear();
}

void NodeRound::on_stop(const control::Stop& stop) {
  if (stop.cause == control::StopCause::NodeLost) lost_ = stop.why;
  if (stop.charged != control::RestartCharge::None) charged_ = stop.charged;
  if (control::is_requested(stop.cause)) is_drained_ = true;
}

bool NodeRound::on_fell_back() { return assignment_.resume && !std::exchange(fell_back_, true); }

void NodeRound::on_workers_gone() {
  if (!is_drained_) exits_.keep_if_failed();
}

std::string NodeRound::unusable_snapshot() const {
  return fell_back_ ? assignment_.resume->snapshot.id : "";
}

std::optional<WorkerExit> NodeRound::own_failure() const {
  return is_drained_ ? std::nullopt : exits_.own_failure();
}

void NodeRound::describe(const std::optional<control::JobResult>& job_result, Finish& how) const {
  how.ends = exits_.last_failed_round();
  add_restarts(assignment_, job_result, how);
  if (how.how == Finish::How::Failure && !job_result->root_cause) how.lost = lost_;
  how.ran_no_worker = is_none();
}

}  // namespace cpprun::agent
