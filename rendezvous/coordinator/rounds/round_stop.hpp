// RoundStop: the stop of a round. Each member gets one Stop (R3), and the round is over when each
// has stopped or is gone (R2).
//
// A core: no I/O, no clock.
#pragma once

#include <cstddef>
#include <set>

#include "common/ids.hpp"
#include "rendezvous/coordinator/effects.hpp"
#include "rendezvous/coordinator/node_table.hpp"
#include "rendezvous/coordinator/rounds/round.hpp"
#include "rendezvous/protocol/control/control.hpp"

namespace cpprun {

class RoundStop {
 public:
  void begin(const control::Stop& stop, const Round& round, const NodeTable& nodes,
             Effects& effects);
  // The node has no workers of the round any more, or is gone.
  void on_stopped(Incarnation node) { pending_.erase(node); }

  // No member is waited for.
  bool is_over() const { return pending_.empty(); }
  // Members that still have workers.
  size_t pending_count() const { return pending_.size(); }
  // The newest one; of round 0: no round was stopped.
  const control::Stop& last() const { return last_; }

 private:
  control::Stop last_;
  std::set<Incarnation> pending_;
};

}  // namespace cpprun
