// NodeRound: the newest round that this node was assigned to, and how it ends here: the exits of
// its workers, why the coordinator stops it, and what that costs. Pure.
#pragma once

#include <optional>
#include <string>

#include "agent/core/effects.hpp"
#include "agent/core/worker_exits.hpp"
#include "common/ids.hpp"
#include "rendezvous/protocol/control/control.hpp"

namespace cpprun::agent {

class NodeRound {
 public:
  // `own`: this node.
  void begin(const control::RankAssignment& assignment, Incarnation own);
  void on_registered(const control::Registered& message) {
    is_standby_ = message.is_standby && assignment_.standby;
  }
  void on_stop(const control::Stop& stop);
  // This node is asked to stop.
  void on_drain() { is_drained_ = true; }
  // The workers could not load the round's snapshot. False: there is none, or it is known.
  bool on_fell_back();
  // All workers have ended or have left the round.
  void on_workers_gone();

  // Before the first one: RoundNumber().
  RoundNumber number() const { return assignment_.round; }
  bool is_none() const { return number() == RoundNumber(); }
  const control::RankAssignment& assignment() const { return assignment_; }
  // This node is the standby (R14).
  bool is_standby() const { return is_standby_; }
  // A request, here or at another node, stops the round.
  bool is_drained() const { return is_drained_; }
  // The restart budget that the end of the round is charged to.
  control::RestartCharge charged() const { return charged_; }
  // The node whose loss ended the round, and how; empty: it ended for another reason.
  const std::string& lost() const { return lost_; }
  // The snapshot that the workers could not load; empty: none.
  std::string unusable_snapshot() const;
  WorkerExits& exits() { return exits_; }
  const WorkerExits& exits() const { return exits_; }
  // Drained, and every worker has saved, has finished, or had not begun.
  bool has_saved() const { return is_drained_ && exits_.have_lost_nothing(); }
  // The failure that the message Stopped carries: WorkerExits::own_failure(). None after a drain.
  std::optional<WorkerExit> own_failure() const;
  // Adds what a result has about the round.
  void describe(const std::optional<control::JobResult>& job_result, Finish& how) const;

 private:
  control::RankAssignment assignment_;
  WorkerExits exits_;
  bool is_standby_ = false;
  bool is_drained_ = false;
  bool fell_back_ = false;
  control::RestartCharge charged_ = control::RestartCharge::None;
  std::string lost_;
};

}  // namespace cpprun::agent
