// RestartBudgets: how many restarts a job may still use after failures and, counted apart, after
// hangs. The numbers are the same on every node.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>

#include "common/ids.hpp"
#include "rendezvous/protocol/control/control.hpp"

namespace cpprun {

// A round that a worker's failure ended costs one restart, however many workers and nodes failed
// and however often they report it. Lost nodes and growth cost nothing (R7).
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

// Both budgets of a job, of the same size.
class RestartBudgets {
 public:
  explicit RestartBudgets(int64_t max, int64_t failures_used = 0, int64_t hangs_used = 0)
      : failures_(max, failures_used), hangs_(max, hangs_used) {}

  const RestartBudget& failures() const { return failures_; }
  const RestartBudget& hangs() const { return hangs_; }

  // Charges `round` once, to the budget of the failure that was reported first. False: that budget
  // is used up.
  bool charge(RoundNumber round, bool is_hang) {
    if (charged(round) != control::RestartCharge::None) return true;
    return (is_hang ? hangs_ : failures_).charge(round);
  }

  void refund(RoundNumber round) {
    failures_.refund(round);
    hangs_.refund(round);
  }

  // What `round` has cost.
  control::RestartCharge charged(RoundNumber round) const {
    if (hangs_.has_charged(round)) return control::RestartCharge::Hang;
    return failures_.has_charged(round) ? control::RestartCharge::Failure
                                        : control::RestartCharge::None;
  }

  // An agent knows of so many restarts, perhaps more than this coordinator.
  void learn(int64_t failures_used, int64_t hangs_used) {
    failures_.learn(failures_used);
    hangs_.learn(hangs_used);
  }

  // "; restarts used: 1 of 3", the end of a failure summary.
  std::string used_text(bool after_hangs) const {
    const RestartBudget& budget = after_hangs ? hangs_ : failures_;
    return std::string("; restarts used") + (after_hangs ? " after hangs: " : ": ") +
           std::to_string(budget.used()) + " of " + std::to_string(budget.max());
  }

 private:
  RestartBudget failures_;
  RestartBudget hangs_;
};

}  // namespace cpprun
