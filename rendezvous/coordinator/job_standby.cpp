// Job: who leads the job when our process has died (R14, R15), and giving it up (R17).
#include "rendezvous/coordinator/job.hpp"

namespace cpprun {

// The standby stays as long as it is in the job: two standbys would be two coordinators. A
// coordinator of its own process comes back where it was (R13), so only one that an agent hosts has
// a standby.
void Job::choose_standby(const std::vector<Node*>& ranked,
                         std::vector<control::RankAssignment>& assignments) {
  const bool can_move = job_spec_.master_addr.empty() && !job_spec_.is_store_on_main_port &&
                        !job_spec_.has_fixed_ranks && !is_standby_lost_ && !options_.leader_lease;
  const Node* next = standby_node();
  if (next != nullptr && next->is_embedded) next = nullptr;
  const bool stays = next != nullptr;  // it believes so, be it or the host in the round or not
  int64_t host_rank = -1;
  for (const Node* node : ranked) {
    if (node->is_embedded) host_rank = *node->group_rank;
    const bool can_lead = !node->is_embedded && node->facts.control_port != 0;
    if (next == nullptr && can_lead) next = node;
  }
  standby_.reset();
  if (can_move && next != nullptr && (stays || host_rank >= 0)) {
    standby_ = control::Standby{next->id.incarnation, reachable_address(*next, ranked),
                                next->facts.control_port};
  }
  for (control::RankAssignment& assignment : assignments) {
    assignment.host_rank = host_rank;
    assignment.is_led_by_standby = options_.is_standby;
    assignment.standby = standby_;
  }
}

// Null: there is none, or it has gone, or it goes and takes nothing over any more.
const Node* Job::standby_node() const {
  if (!standby_) return nullptr;
  auto it = nodes_.find(standby_->node);
  const bool is_there = it != nodes_.end() && it->second.liveness == Node::Liveness::Present;
  return is_there && !it->second.is_draining() ? &it->second : nullptr;
}

// Without it no round is formed: it would not know of its successor.
bool Job::is_standby_awaited() const {
  const Node* standby = standby_node();
  return standby != nullptr && !standby->is_ready();
}

bool Job::is_left_to_standby() const {
  if (!is_host_drained_ || phase_ != Phase::WaitingForNodes) return false;
  const Node* standby = standby_node();
  return options_.leader_lease ? has_successor() : standby != nullptr && standby->is_connected();
}

bool Job::can_be_redirected() const {
  return is_recovering() || is_new();
}

void Job::redirect_members(const control::Redirect& to, Effects& effects) {
  for (const auto& [incarnation, node] : nodes_) send(node, to, effects);
  forget_nodes();
}

void Job::disconnect_all(Effects& effects) {
  for (const auto& [session, node] : sessions_) effects.emplace_back(Close{session, false});
  forget_nodes();
}

void Job::forget_nodes() {
  nodes_.clear();
  sessions_.clear();
  ready_.clear();
}

}  // namespace cpprun
