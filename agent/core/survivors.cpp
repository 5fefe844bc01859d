#include "agent/core/survivors.hpp"

#include "agent/core/restart_budget.hpp"
#include "common/limits/regroup.hpp"

namespace cpprun::agent {

void Survivors::on_step() {
  has_stepped_ = true;
  rounds_without_step_ = 0;
}

bool Survivors::may_stay(const control::RankAssignment& assignment, bool is_hang) const {
  using control::RestartCharge;
  const auto charge = is_hang ? RestartCharge::Hang : RestartCharge::Failure;
  return is_able() && rounds_without_step_ <= limits::kRoundsWithoutStepMost &&
         !ends_job(assignment, charge, std::nullopt);
}

// Arrivals and departures of nodes are charged to no budget, and losses only where they are
// limited.
bool Survivors::may_stay(const control::RankAssignment& assignment,
                         const control::Stop& stop) const {
  switch (stop.cause) {
    case control::StopCause::Failure:
      return may_stay(assignment, stop.charged == control::RestartCharge::Hang);
    case control::StopCause::NodeLost:
      if (ends_job(assignment, stop.charged, std::nullopt)) return false;
      break;
    case control::StopCause::Drain:
    case control::StopCause::Scale:
    case control::StopCause::Exclusion:
      if (can_save_) return false;
      break;
    case control::StopCause::NodeLeft:
    case control::StopCause::Growth: break;
    default: return false;
  }
  return is_able();
}

void Survivors::ask(Duration grace, std::optional<LocalRank> hung, Effects& effects) {
  phase_ = Phase::Asked;
  StopWorkers stop{kSigTerm, grace};
  stop.keeps_survivors = true;
  stop.hung = hung;
  effects.push_back(stop);
}

void Survivors::drop(Duration grace, Effects& effects) {
  phase_ = Phase::Dropped;
  effects.push_back(StopWorkers{kSigTerm, grace});
}

void Survivors::on_round_started() {
  ++rounds_without_step_;
  has_stepped_ = has_stepped_ && are_held();
  can_regroup_ = are_held();
  phase_ = Phase::None;
}

}  // namespace cpprun::agent
