#include "rendezvous/coordinator/standby_choice.hpp"

#include "rendezvous/coordinator/rounds/ranking.hpp"

namespace cpprun {

// The standby stays the same as long as it is in the job: two standbys would be two coordinators.
// Only a coordinator that an agent hosts has a standby: one in a process of its own is started
// again where it was (R13).
void StandbyChoice::choose(const std::vector<Node*>& ranked, const NodeTable& nodes,
                           bool is_led_by_standby,
                           std::vector<control::RankAssignment>& assignments) {
  const Node* next = node(nodes);
  if (next != nullptr && next->is_embedded) next = nullptr;
  // A standby relies on its choice, even if neither it nor the host is part of this round.
  const bool stays = next != nullptr;
  int64_t host_rank = -1;
  for (const Node* member : ranked) {
    if (member->is_embedded) host_rank = *member->group_rank;
    const bool can_lead = !member->is_embedded && member->facts.control_port != 0;
    if (next == nullptr && can_lead) next = member;
  }
  standby_.reset();
  if (can_move_ && !is_lost_ && next != nullptr && (stays || host_rank >= 0)) {
    standby_ = control::Standby{next->id.incarnation, reachable_address(*next, ranked),
                                next->facts.control_port};
  }
  for (control::RankAssignment& assignment : assignments) {
    assignment.host_rank = host_rank;
    assignment.is_led_by_standby = is_led_by_standby;
    assignment.standby = standby_;
  }
}

void StandbyChoice::on_recovered(const control::RankAssignment& newest, bool has_taken_over) {
  if (has_taken_over) standby_.reset();
  // The former coordinator may have lost its standby in silence.
  if (newest.round > RoundNumber() && !newest.standby) is_lost_ = true;
}

// The node may connect again as the standby that it still is, and other nodes may still redirect to
// it. Only evidence of its death would allow another standby.
void StandbyChoice::on_silent(Incarnation node) {
  if (!is_chosen(node)) return;
  is_lost_ = true;
  standby_.reset();  // it may be back before the next round, which names none
}

const Node* StandbyChoice::node(const NodeTable& nodes) const {
  if (!standby_) return nullptr;
  const Node* found = nodes.find(standby_->node);
  const bool is_there = found != nullptr && found->liveness == Node::Liveness::Present;
  return is_there && !found->is_draining() ? found : nullptr;
}

bool StandbyChoice::is_awaited(const NodeTable& nodes) const {
  const Node* standby = node(nodes);
  return standby != nullptr && !standby->is_free();
}

}  // namespace cpprun
