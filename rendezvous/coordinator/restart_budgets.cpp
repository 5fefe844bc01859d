#include "rendezvous/coordinator/restart_budgets.hpp"

namespace cpprun {
namespace {

std::string of(const RestartBudget& budget) {
  return std::to_string(budget.used()) + " of " + std::to_string(budget.max());
}

}  // namespace

RestartBudgets::RestartBudgets(const control::JobSpec& job_spec)
    : failures_(job_spec.max_restarts),
      hangs_(job_spec.max_hangs < 0 ? job_spec.max_restarts : job_spec.max_hangs),
      losses_(std::max<int64_t>(0, job_spec.max_node_losses)),
      are_losses_limited_(job_spec.max_node_losses >= 0),
      is_hang_limit_own_(job_spec.max_hangs >= 0) {}

control::RestartCharge RestartBudgets::charged(RoundNumber round) const {
  if (hangs_.has_charged(round)) return control::RestartCharge::Hang;
  if (losses_.has_charged(round)) return control::RestartCharge::NodeLoss;
  return failures_.has_charged(round) ? control::RestartCharge::Failure
                                      : control::RestartCharge::None;
}

std::optional<control::ClassBudgets> RestartBudgets::by_class() const {
  if (!are_losses_limited_ && !is_hang_limit_own_) return std::nullopt;
  control::ClassBudgets all;
  if (is_hang_limit_own_) all.max_hangs = hangs_.max();
  if (!are_losses_limited_) return all;
  all.node_losses = losses_.used();
  all.max_node_losses = losses_.max();
  return all;
}

void RestartBudgets::restore(const control::RankAssignment& assignment) {
  failures_ = RestartBudget(failures_.max(), assignment.restart_count);
  hangs_ = RestartBudget(hangs_.max(), assignment.hang_restarts);
  losses_ = RestartBudget(losses_.max(), class_budgets(assignment).node_losses);
}

void RestartBudgets::learn(const control::RankAssignment& assignment) {
  failures_.learn(assignment.restart_count);
  hangs_.learn(assignment.hang_restarts);
  losses_.learn(class_budgets(assignment).node_losses);
}

std::string RestartBudgets::used_text(bool after_hangs) const {
  if (!after_hangs) return "; restarts used: " + of(failures_);
  return "; restarts used after hangs: " + of(hangs_) +
         (is_hang_limit_own_ ? " (--max-hangs)" : "");
}

std::string RestartBudgets::losses_text() const {
  return "; node losses used: " + of(losses_) + " (--max-node-losses)";
}

}  // namespace cpprun
