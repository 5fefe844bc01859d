// Survivors: the workers of this node that stay alive between two rounds, because they can regroup.
// Knows whether the workers of a round may be asked to, and whether some are held. Where no worker
// can regroup, all are restarted as ever. Pure.
//
// Workers stay for the state of the steps that they have completed, also if their next round ends
// before its first step. If workers fail in several such rounds in a row, all are restarted
// (limits::kRoundsWithoutStepMost).
#pragma once

#include <optional>

#include "agent/core/effects.hpp"
#include "common/ids.hpp"
#include "common/time.hpp"
#include "rendezvous/protocol/control/control.hpp"

namespace cpprun::agent {

class Survivors {
 public:
  // `is_enabled`: the user permits it.
  explicit Survivors(bool is_enabled) : is_enabled_(is_enabled) {}

  // The round of `assignment` ends by a failure or a hang, and workers of it may stay for the next
  // one.
  bool may_stay(const control::RankAssignment& assignment, bool is_hang) const;
  // The same at the coordinator's request.
  bool may_stay(const control::RankAssignment& assignment, const control::Stop& stop) const;

  // Stops the workers, but for those that regroup. `hung`: a worker that hangs, and cannot.
  void ask(Duration grace, std::optional<LocalRank> hung, Effects& effects);
  // Stops all workers.
  void drop(Duration grace, Effects& effects);

  void on_released() { phase_ = Phase::Held; }
  // No worker is left.
  void on_gone() { phase_ = Phase::None; }
  void on_round_started();
  // A worker of this node can regroup, in this round and, if it stays, in the next one.
  void on_can_regroup() { can_regroup_ = true; }
  // Whether a worker here saves its work on request. After a drain, a change of the number of
  // nodes or an exclusion such workers are not asked to regroup, because they save together and
  // lose nothing.
  void on_savers(bool can_save) { can_save_ = can_save; }
  // A worker here has completed its first step of the round.
  void on_step();

  bool are_asked() const { return phase_ == Phase::Asked; }
  bool are_held() const { return phase_ == Phase::Held; }
  bool are_dropped() const { return phase_ == Phase::Dropped; }
  // Processes of an earlier round are alive while no round runs.
  bool exist() const { return are_held() || are_dropped(); }

 private:
  enum class Phase { None, Asked, Held, Dropped };

  bool is_able() const { return is_enabled_ && can_regroup_ && has_stepped_; }

  bool is_enabled_;
  Phase phase_ = Phase::None;
  bool can_regroup_ = false;         // a worker here
  bool has_stepped_ = false;         // a worker here, in this round or before it stayed
  bool can_save_ = false;            // a worker here
  int64_t rounds_without_step_ = 0;  // in a row, on this node
};

}  // namespace cpprun::agent
