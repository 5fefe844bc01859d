// FailureReport: the failure of a round on this node, as the coordinator and the console get it.
//
// The coordinator gets it again on every new connection until it is known to have it. The console
// may get it later than the coordinator: an exit that shows that another node drains is no failure
// if it does. Pure.
#pragma once

#include <optional>
#include <utility>

#include "agent/core/effects.hpp"
#include "common/failure/worker_exit.hpp"
#include "common/time.hpp"
#include "rendezvous/protocol/control/control.hpp"

namespace cpprun::agent {

class FailureReport {
 public:
  // Forgets the previous round.
  void begin_round();

  // A worker has failed; its exit with its last lines follows.
  void await_exit() { is_exit_awaited_ = true; }
  // An exit that is no success. No effect, unless it is awaited. `regroups`: the other workers are
  // asked to.
  void on_exit(Instant now, const WorkerExit& end, const control::RankAssignment& assignment,
               bool regroups, Effects& effects);
  void on_hang(const WorkerExit& hung, const control::RankAssignment& assignment, bool regroups,
               Effects& effects);
  // The workers could not start.
  void on_no_start(control::Failed failed, Effects& effects) { send(std::move(failed), effects); }
  // The coordinator stops the round.
  void on_stop(control::StopCause cause, Effects& effects);

  // Not known to have reached the coordinator.
  const std::optional<control::Failed>& unreported() const { return unreported_; }
  void send_again(Effects& effects) const {
    if (unreported_) effects.push_back(SendMessage{*unreported_});
  }
  // The exit that the console has not got was a failure after all.
  void show_held(Effects& effects);

 private:
  void send(control::Failed&& failed, Effects& effects);

  std::optional<control::Failed> unreported_;
  bool is_exit_awaited_ = false;
  // Not shown yet: if another node drains, this exit belongs to the drain.
  std::optional<FirstFailure> held_;
};

}  // namespace cpprun::agent
