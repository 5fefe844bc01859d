#include "rendezvous/coordinator/lease_tracker.hpp"

#include <algorithm>

#include "common/limits/rendezvous.hpp"
#include "common/limits/suspension.hpp"
#include "rendezvous/coordinator/late_wakeup_guard.hpp"
#include "rendezvous/protocol/worker_lease_duration.hpp"

namespace cpprun {

Duration LeaseTracker::worker_lease(Instant now) const {
  const Duration most = worker_lease_of(lease_);
  return has_leader_lease_ ? std::clamp(until_ - now, Duration{}, most) : most;
}

void LeaseTracker::on_registered(Instant now, const Node& node) {
  if (!is_exempt(node)) next_lease_end_ = std::min(next_lease_end_, now + lease_);
}

void LeaseTracker::on_died(Instant now, Node& node) {
  node.liveness = Node::Liveness::Dead;
  node.dead_at = now;
  next_node_expiry_ = std::min(next_node_expiry_, now + limits::kDeathGrace);
}

std::vector<Incarnation> LeaseTracker::expire_dead(Instant now, const NodeTable& nodes) {
  std::vector<Incarnation> gone;
  if (now < next_node_expiry_) return gone;
  next_node_expiry_ = Instant::never();
  for (const auto& [incarnation, node] : nodes) {
    if (node.liveness != Node::Liveness::Dead) continue;
    const Instant end = node.dead_at + limits::kDeathGrace;
    if (end <= now) {
      gone.push_back(incarnation);
    } else {
      next_node_expiry_ = std::min(next_node_expiry_, end);
    }
  }
  return gone;
}

std::vector<Incarnation> LeaseTracker::expire_silent(Instant now, const NodeTable& nodes,
                                                     bool is_recovering) {
  std::vector<Incarnation> lost;
  if (now < next_lease_end_) return lost;
  const Duration late = now - next_lease_end_;
  next_lease_end_ = Instant::never();
  if (is_recovering) return lost;
  // This coordinator was suspended, and perhaps the nodes with it: they run again a little later.
  if (late > LateWakeupGuard::kLateWakeup) {
    next_lease_end_ = now + std::min(late, limits::kResumeAnswerTimeout);
    return lost;
  }
  for (const auto& [incarnation, node] : nodes) {
    if (is_exempt(node) || node.liveness != Node::Liveness::Present) continue;
    const Instant end = node.heard_at + lease_;
    if (end <= now) {
      lost.push_back(incarnation);
    } else {
      next_lease_end_ = std::min(next_lease_end_, end);
    }
  }
  return lost;
}

}  // namespace cpprun
