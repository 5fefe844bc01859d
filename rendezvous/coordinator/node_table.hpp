// NodeTable: the nodes of a job, by incarnation and by connection, and those of them that are ready
// for the next round.
//
// A core: no I/O, no clock. References to nodes stay valid until erase() and the like.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "common/ids.hpp"
#include "common/time.hpp"
#include "rendezvous/coordinator/effects.hpp"
#include "rendezvous/coordinator/hosts/host_ledger.hpp"
#include "rendezvous/coordinator/node.hpp"
#include "rendezvous/coordinator/repeats/failure_repeats.hpp"
#include "rendezvous/protocol/control/control.hpp"

namespace cpprun {

class NodeTable {
 public:
  // Ordered, because the order of iteration reaches messages.
  using Nodes = std::map<Incarnation, Node>;

  // A node registers, for the first time or over a newer connection: the older one is closed.
  // Requires: check_registration() allows it.
  Node& add(Instant now, SessionId session, const control::Hello& hello,
            const control::Register& message, const SessionAddresses& addresses, Effects& effects);
  // The node's connection has ended; the node stays.
  void disconnect(Node& node);
  void erase(Incarnation incarnation);
  // Closes all connections and forgets all nodes.
  void disconnect_all(Effects& effects);
  // The same for the nodes that have reported no rank assignment with this key.
  void disconnect_without(const std::string& job_key, Effects& effects);
  // Sends all nodes the address of the job's leader, and forgets them.
  void redirect_all(const control::Redirect& to, Effects& effects);
  // The node has changed: it enters ready() or leaves it.
  void update_ready(const Node& node);
  // The node is a member of a round now.
  void remove_ready(const Node& node) { ready_.erase(node.id.incarnation); }

  const Nodes& all() const { return nodes_; }
  Nodes::iterator begin() { return nodes_.begin(); }
  Nodes::iterator end() { return nodes_.end(); }
  Nodes::const_iterator begin() const { return nodes_.begin(); }
  Nodes::const_iterator end() const { return nodes_.end(); }
  bool is_empty() const { return nodes_.empty(); }
  // nullptr: none.
  Node* find(SessionId session);
  Node* find(Incarnation incarnation);
  const Node* find(Incarnation incarnation) const;
  Node& at(Incarnation incarnation) { return nodes_.at(incarnation); }
  const Node& at(Incarnation incarnation) const { return nodes_.at(incarnation); }
  // Whether a connection with these addresses comes from the machine of a node that is or was in a
  // round. Spares do not count: any program that reaches the port can register as one.
  bool is_from_member(const SessionAddresses& connection) const;
  bool has_session(SessionId session) const { return sessions_.contains(session); }
  // Nodes that may take part in the next round.
  const std::set<Incarnation>& ready() const { return ready_; }
  int64_t ready_count() const { return static_cast<int64_t>(ready_.size()); }
  // How many more it takes for a round of `min_nodes`.
  int64_t missing_count(int64_t min_nodes) const {
    return std::max<int64_t>(0, min_nodes - ready_count());
  }
  // Nodes that can be in a round, at once or when they have connected again.
  int64_t usable_count(const HostLedger& hosts) const;
  // Whether a node outside this process is here that could be elected coordinator.
  bool has_candidate() const;
  // The newest complete snapshot of any node.
  std::optional<control::SnapshotName> newest_snapshot() const;
  // What the workers of all nodes have reached.
  JobProgress progress() const;

 private:
  void clear();

  Nodes nodes_;
  std::map<SessionId, Incarnation> sessions_;
  std::set<Incarnation> ready_;
  int64_t arrivals_ = 0;
};

// To a node without a connection nothing is sent: it learns what it has missed when it registers
// again.
void send(const Node& node, control::CoordinatorMessage message, Effects& effects);

}  // namespace cpprun
