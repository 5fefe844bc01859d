// StandbyChoice: which agent leads the job when the process of its coordinator dies (R14, R15).
//
// A core: no I/O, no clock.
#pragma once

#include <optional>
#include <vector>

#include "common/ids.hpp"
#include "rendezvous/coordinator/node_table.hpp"
#include "rendezvous/protocol/control/control.hpp"

namespace cpprun {

class StandbyChoice {
 public:
  // `has_leader_lease`: etcd elects the next coordinator, so there is no standby.
  StandbyChoice(const control::JobSpec& job_spec, bool has_leader_lease)
      : can_move_(job_spec.master_addr.empty() && !job_spec.is_store_on_main_port &&
                  !job_spec.has_fixed_ranks && !has_leader_lease) {}

  // A round forms: chooses its standby and writes it, and the host's rank, into the assignments.
  void choose(const std::vector<Node*>& ranked, const NodeTable& nodes, bool is_led_by_standby,
              std::vector<control::RankAssignment>& assignments);
  // The job continues from this round of another coordinator.
  void restore(const control::RankAssignment& assignment) { standby_ = assignment.standby; }
  // The recovery is over. `has_taken_over`: this coordinator was the standby.
  void on_recovered(const control::RankAssignment& newest, bool has_taken_over);
  // The lease of this node has ended in silence.
  void on_silent(Incarnation node);

  // Of the newest round.
  const std::optional<control::Standby>& standby() const { return standby_; }
  bool is_chosen(Incarnation node) const { return standby_ && standby_->node == node; }
  // nullptr: there is none, it is lost, or it leaves and takes over no more.
  const Node* node(const NodeTable& nodes) const;
  // Until the standby is ready no round forms: it would not learn which node succeeds it.
  bool is_awaited(const NodeTable& nodes) const;

 private:
  const bool can_move_;  // the job can be led from another address
  std::optional<control::Standby> standby_;
  bool is_lost_ = false;  // a standby may live on unseen: no other one is chosen any more
};

}  // namespace cpprun
