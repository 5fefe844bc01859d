#include "agent/core/restart_budget.hpp"

namespace cpprun::agent {

int64_t max_hangs(const control::RankAssignment& assignment) {
  const int64_t own = class_budgets(assignment).max_hangs;
  return own < 0 ? assignment.max_restarts : own;
}

bool ends_job(const control::RankAssignment& assignment, control::RestartCharge charged,
              const std::optional<control::Failed>& unreported) {
  using control::RestartCharge;
  if (unreported && unreported->is_fatal) return true;
  if (charged == RestartCharge::NodeLoss) {
    const control::ClassBudgets budgets = class_budgets(assignment);
    return budgets.node_losses >= budgets.max_node_losses;
  }
  if (charged == RestartCharge::None && !unreported) return false;
  const bool is_hang = charged == RestartCharge::Hang || (unreported && unreported->end.is_hang());
  return is_hang ? assignment.hang_restarts >= max_hangs(assignment)
                 : assignment.restart_count >= assignment.max_restarts;
}

void add_restarts(const control::RankAssignment& assignment,
                  const std::optional<control::JobResult>& job_result, Finish& how) {
  const bool is_hang =
      job_result && job_result->root_cause && job_result->root_cause->end.is_hang();
  how.restarts_used = is_hang ? assignment.hang_restarts : assignment.restart_count;
  how.admin_restarts = assignment.admin_restarts;
}

}  // namespace cpprun::agent
