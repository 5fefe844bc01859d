// LeaseTracker: how long the workers of a node may live, and when a node counts as lost: a dead
// node when its workers are surely gone, a silent one when its node lease ends. Before it, the
// times that follow from a job's node lease (docs/protocol.md, R5, R6, I1).
//
// A core: no I/O, no clock.
#pragma once

#include <algorithm>
#include <vector>

#include "common/ids.hpp"
#include "common/time.hpp"
#include "rendezvous/coordinator/node_table.hpp"

namespace cpprun {

class LeaseTracker {
 public:
  // `has_leader_lease`: this coordinator was elected. Requires, then: lead_until() before any
  // worker_lease().
  LeaseTracker(Duration lease, bool has_leader_lease)
      : lease_(lease), has_leader_lease_(has_leader_lease) {}

  // The node in the coordinator's own process ends with the coordinator, so it needs no lease.
  // Under a leader lease it does: while this process is frozen another one may be elected.
  bool is_exempt(const Node& node) const { return node.is_embedded && !has_leader_lease_; }

  // How long the workers of a node may live from the ping on that asks now. No worker lease
  // outlasts the leader lease: another coordinator may lead after that.
  Duration worker_lease(Instant now) const;
  // The leader lease lasts until then.
  void lead_until(Instant until) { until_ = until; }

  void on_registered(Instant now, const Node& node);
  // There is evidence that the agent is dead (R4).
  void on_died(Instant now, Node& node);
  // The leases of all nodes begin.
  void restart(Instant now) { next_lease_end_ = now + lease_; }

  // Dead nodes whose workers are gone by now.
  std::vector<Incarnation> expire_dead(Instant now, const NodeTable& nodes);
  // Silent nodes whose lease has ended (R5). While the coordinator recovers no node has a lease.
  std::vector<Incarnation> expire_silent(Instant now, const NodeTable& nodes, bool is_recovering);
  Instant next_deadline() const { return std::min(next_node_expiry_, next_lease_end_); }

 private:
  const Duration lease_;
  const bool has_leader_lease_;
  Instant until_;  // the end of the leader lease
  // Lower bounds, so that a call before them costs nothing.
  Instant next_node_expiry_ = Instant::never();
  Instant next_lease_end_ = Instant::never();
};

}  // namespace cpprun
