#include "agent/core/failure_report.hpp"

#include <utility>

#include "common/exit_code.hpp"

namespace cpprun::agent {

void FailureReport::begin_round() {
  unreported_.reset();
  is_exit_awaited_ = false;
  held_.reset();
}

void FailureReport::send(control::Failed&& failed, Effects& effects) {
  unreported_ = std::move(failed);
  effects.push_back(SendMessage{*unreported_});
}

void FailureReport::on_exit(Instant now, const WorkerExit& end,
                            const control::RankAssignment& assignment, bool regroups,
                            Effects& effects) {
  if (!std::exchange(is_exit_awaited_, false)) return;
  FirstFailure failure{end, assignment, regroups};
  if (end.exit_code == kStoppedResumable) {
    held_ = std::move(failure);
  } else {
    effects.push_back(std::move(failure));
  }
  control::Failed failed{assignment.round, for_the_wire(end), false};
  failed.sent_at = now;
  send(std::move(failed), effects);
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
  if (held_) effects.push_back(std::move(*held_));
  held_.reset();
}

}  // namespace cpprun::agent
