#include "agent/core/restart_budget.hpp"

namespace cpprun::agent {

bool ends_job(const control::RankAssignment& assignment, control::RestartCharge charged,
              const std::optional<control::Failed>& unreported) {
  const bool is_fatal = unreported && unreported->is_fatal;
  const bool has_failed = unreported || charged != control::RestartCharge::None;
  const bool is_hang =
      charged == control::RestartCharge::Hang || (unreported && unreported->end.is_hang());
  const int64_t used = is_hang ? assignment.hang_restarts : assignment.restart_count;
  return is_fatal || (has_failed && used >= assignment.max_restarts);
}

}  // namespace cpprun::agent
