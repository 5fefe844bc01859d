// Membership: who leads the job when our process has died (R14, R15), and giving it up (R17).
#include "rendezvous/coordinator/membership.hpp"

namespace cpprun {

// The heir stays as long as it is in the job: two heirs would be two coordinators. A coordinator of
// its own process comes back where it was (R13), so only one that an agent hosts has an heir.
void Membership::name_heir(const std::vector<Node*>& ranked, std::vector<control::World>& worlds) {
  const bool can_move = terms_.master_addr.empty() && !terms_.is_store_on_main_port &&
                        !terms_.has_fixed_ranks && !is_heir_lost_ && !options_.mandate;
  const Node* next = heir_node();
  if (next != nullptr && next->is_embedded) next = nullptr;
  const bool stays = next != nullptr;  // it believes so, be it or the host in the round or not
  int64_t host_rank = -1;
  for (const Node* node : ranked) {
    if (node->is_embedded) host_rank = *node->group_rank;
    const bool can_lead = !node->is_embedded && node->facts.control_port != 0;
    if (next == nullptr && can_lead) next = node;
  }
  heir_.reset();
  if (can_move && next != nullptr && (stays || host_rank >= 0)) {
    heir_ = control::Heir{next->id.incarnation, reachable_address(*next, ranked),
                          next->facts.control_port};
  }
  for (control::World& world : worlds) {
    world.host_rank = host_rank;
    world.is_moved = options_.is_heir;
    world.heir = heir_;
  }
}

// Null: there is none, or it has gone, or it goes and takes nothing over any more.
const Node* Membership::heir_node() const {
  if (!heir_) return nullptr;
  auto it = nodes_.find(heir_->node);
  const bool is_there = it != nodes_.end() && it->second.life == Node::Life::Present;
  return is_there && !it->second.is_draining() ? &it->second : nullptr;
}

// Without it no round is formed: it would not know of its successor.
bool Membership::is_heir_awaited() const {
  const Node* heir = heir_node();
  return heir != nullptr && !heir->is_ready();
}

bool Membership::is_left_to_heir() const {
  if (!is_host_drained_ || phase_ != Phase::Gathering) return false;
  const Node* heir = heir_node();
  return options_.mandate ? has_successor() : heir != nullptr && heir->is_connected();
}

bool Membership::may_be_handed_over() const {
  return is_recovering() || is_new();
}

void Membership::hand_over(const control::Moved& to, Effects& effects) {
  for (const auto& [incarnation, node] : nodes_) send(node, to, effects);
  forget_nodes();
}

void Membership::turn_away(Effects& effects) {
  for (const auto& [session, node] : sessions_) effects.emplace_back(Close{session, false});
  forget_nodes();
}

void Membership::forget_nodes() {
  nodes_.clear();
  sessions_.clear();
  ready_.clear();
}

}  // namespace cpprun
