// StragglerWatch: takes the nodes' reports of compute times, names slow ranks, and decides what
// follows for their nodes (--stragglers).
//
// A core: no I/O, no clock. It acts on a node once in a round, and only if the job can continue
// without that node; else it only reports.
#pragma once

#include <set>
#include <string>

#include "rendezvous/coordinator/effects.hpp"
#include "rendezvous/coordinator/hosts/host_ledger.hpp"
#include "rendezvous/coordinator/node_table.hpp"
#include "rendezvous/coordinator/rounds/round.hpp"
#include "rendezvous/coordinator/stragglers/slow_ranks.hpp"
#include "rendezvous/protocol/control/control.hpp"

namespace cpprun {

class StragglerWatch {
 public:
  // The state of the job, as far as the decision depends on it.
  struct JobView {
    const control::JobSpec& job_spec;
    const NodeTable& nodes;
    const Round& round;
    HostLedger& hosts;
  };

  // Requires: a round runs. Returns why it has to stop, so that the next one forms without the
  // excluded host; "": it continues. A report out of range, or of another round, is ignored.
  std::string take(const JobView& job, const Node& node, const control::ComputeTimes& report,
                   Effects& effects);
  const SlowRanks& ranks() const { return ranks_; }

 private:
  std::string on_change(const JobView& job, const Node& node, const SlowRankChange& change,
                        Effects& effects);
  // Whether the job can continue without the hosts that are excluded, those that leave, and
  // `left_out`.
  bool can_continue(const JobView& job, const Node& left_out) const;

  SlowRanks ranks_;
  // In this round:
  std::set<Incarnation> acted_on_;
  std::set<Incarnation> drained_;  // asked to leave; their agents confirm it later
};

}  // namespace cpprun
