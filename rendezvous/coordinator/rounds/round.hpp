// Round: the members of the newest round of a job, the rank assignment that each was sent, and the
// members that have finished their part.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <utility>

#include "common/ids.hpp"
#include "rendezvous/protocol/control/control.hpp"

namespace cpprun {

// What a job does with its newest round. Recovering: another coordinator has led the job, and its
// nodes report how far it is (R13).
enum class JobPhase { Recovering, WaitingForNodes, Running, Stopping, Finishing, Ended };

class Round {
 public:
  // Ordered, because the order of iteration reaches messages.
  using Assignments = std::map<Incarnation, control::RankAssignment>;

  // A round without members yet. Round 0: none was formed.
  explicit Round(RoundNumber number = RoundNumber()) : number_(number) {}

  void add(Incarnation member, control::RankAssignment assignment) {
    assignments_.emplace(member, std::move(assignment));
  }
  // The member's workers have all ended well. It stays done when it leaves.
  void mark_done(Incarnation member) { done_.insert(member); }

  RoundNumber number() const { return number_; }
  const Assignments& assignments() const { return assignments_; }
  // Members.
  size_t size() const { return assignments_.size(); }
  bool is_empty() const { return assignments_.empty(); }
  bool is_member(Incarnation node) const { return assignments_.contains(node); }
  bool is_done(Incarnation node) const { return done_.contains(node); }
  // A member whose part is not finished: the round can't continue without it.
  bool needs(Incarnation node) const { return is_member(node) && !is_done(node); }
  bool is_any_done() const { return !done_.empty(); }
  bool are_all_done() const { return done_.size() == assignments_.size(); }
  // Workers of all nodes of the round; 0 before the first round.
  int64_t world_size() const {
    return assignments_.empty() ? 0 : assignments_.begin()->second.world_size;
  }

 private:
  RoundNumber number_;
  Assignments assignments_;
  std::set<Incarnation> done_;
};

}  // namespace cpprun
