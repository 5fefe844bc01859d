// RestartBudgets: how many restarts a job may still use, by class of failure: failures of workers,
// hangs, and lost nodes. The numbers are the same on every node.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "common/ids.hpp"
#include "rendezvous/protocol/control/control.hpp"

namespace cpprun {

// A round that a worker's failure ended costs one restart, however many workers and nodes failed
// and however often they report it (R7).
class RestartBudget {
 public:
  explicit RestartBudget(int64_t max, int64_t used = 0) : max_(max), used_(used) {}

  // Charges a failure of `round` once. False: no restart is left.
  bool charge(RoundNumber round) {
    if (has_charged(round)) return true;
    last_charged_ = round;
    is_refundable_ = used_ < max_;
    if (!is_refundable_) return false;
    ++used_;
    return true;
  }

  // What `round` was charged does not count after all.
  void refund(RoundNumber round) {
    if (round == last_charged_ && std::exchange(is_refundable_, false)) --used_;
  }

  bool has_charged(RoundNumber round) const { return round <= last_charged_; }
  // An agent or a former coordinator has counted `used` restarts.
  void learn(int64_t used) { used_ = std::max(used_, used); }
  int64_t used() const { return used_; }
  int64_t max() const { return max_; }

 private:
  int64_t max_;
  int64_t used_;
  RoundNumber last_charged_;
  bool is_refundable_ = false;  // last_charged_ was counted in used_
};

// The budgets of a job. A round is charged once, to the budget of what ended it first. Lost nodes
// are counted only where their number is limited; growth and requested stops cost nothing.
class RestartBudgets {
 public:
  explicit RestartBudgets(const control::JobSpec& job_spec);
  // For as many failures as hangs, and any number of lost nodes.
  explicit RestartBudgets(int64_t max) : failures_(max), hangs_(max), losses_(0) {}

  const RestartBudget& failures() const { return failures_; }
  const RestartBudget& hangs() const { return hangs_; }
  // nullptr: their number is not limited.
  const RestartBudget* losses() const { return are_losses_limited_ ? &losses_ : nullptr; }

  // A worker failed or hung in `round`. False: the budget of that class is used up.
  bool charge(RoundNumber round, bool is_hang) {
    if (charged(round) != control::RestartCharge::None) return true;
    return (is_hang ? hangs_ : failures_).charge(round);
  }
  // A lost node has ended `round`. False: the budget is used up.
  bool charge_loss(RoundNumber round) {
    if (charged(round) != control::RestartCharge::None) return true;
    return !are_losses_limited_ || losses_.charge(round);
  }

  // A failure in `round` does not count: its host is excluded. A loss does.
  void refund(RoundNumber round) {
    failures_.refund(round);
    hangs_.refund(round);
  }

  // What `round` has cost.
  control::RestartCharge charged(RoundNumber round) const;

  // For rank assignments; empty: --max-restarts is the only budget.
  std::optional<control::ClassBudgets> by_class() const;
  // The job continues from a round of another coordinator.
  void restore(const control::RankAssignment& assignment);
  // An agent knows of so many restarts, perhaps more than this coordinator.
  void learn(const control::RankAssignment& assignment);

  // "; restarts used: 1 of 3", the end of a failure summary.
  std::string used_text(bool after_hangs) const;
  // "; node losses used: 1 of 1 (--max-node-losses)". Requires: losses().
  std::string losses_text() const;

 private:
  RestartBudget failures_;
  RestartBudget hangs_;
  RestartBudget losses_;
  bool are_losses_limited_ = false;
  bool is_hang_limit_own_ = false;  // --max-hangs is given
};

}  // namespace cpprun
