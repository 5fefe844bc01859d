#include "agent/core/failure_report.hpp"

#include <utility>

#include "common/exit_code.hpp"

namespace cpprun::agent {

void FailureReport::send(const control::Failed& failed, Effects& effects) {
  unreported_ = failed;
  effects.push_back(SendMessage{failed});
}

void FailureReport::on_exit(Instant now, const WorkerExit& end,
                            const control::RankAssignment& assignment, bool regroups,
                            Effects& effects) {
  if (!std::exchange(is_exit_awaited_, false)) return;
  held_ = FirstFailure{end, assignment, regroups};
  if (end.exit_code != kStoppedResumable) show_held(effects);
  control::Failed failed{assignment.round, for_the_wire(end), false};
  failed.sent_at = now;
  send(failed, effects);
}

void FailureReport::on_hang(const WorkerExit& hung, const control::RankAssignment& assignment,
                            bool regroups, Effects& effects) {
  effects.push_back(FirstFailure{hung, assignment, regroups});
  send(control::Failed{assignment.round, for_the_wire(hung), false}, effects);
}

void FailureReport::on_stop(control::StopCause cause, Effects& effects) {
  using control::StopCause;
  if (cause == StopCause::Failure || cause == StopCause::Snapshot) unreported_.reset();
  if (control::is_requested(cause)) {
    held_.reset();
  } else if (held_) {
    show_held(effects);
    effects.push_back(EndSaving{kSigTerm});
  }
}

void FailureReport::show_held(Effects& effects) {
  if (held_) effects.push_back(*std::exchange(held_, std::nullopt));
}

}  // namespace cpprun::agent
