// ResultDelivery: the result of a job, which each of its nodes gets and acknowledges (R9).
//
// A core: no I/O, no clock.
#pragma once

#include <set>
#include <utility>

#include "common/ids.hpp"
#include "rendezvous/coordinator/effects.hpp"
#include "rendezvous/coordinator/node_table.hpp"
#include "rendezvous/protocol/control/control.hpp"

namespace cpprun {

class ResultDelivery {
 public:
  // The job is over, here or at a former coordinator.
  void decide(control::JobResult result) { result_ = std::move(result); }
  // To all nodes that are here. A disconnected `standby` is waited for: it must not take our exit
  // for our death (R14). nullptr: there is none.
  void send_to_all(const NodeTable& nodes, const Node* standby, Effects& effects);
  void send_to(const Node& node, Effects& effects);
  // The node has acknowledged the result, or is gone.
  void on_done(Incarnation node) { pending_.erase(node); }

  // No acknowledgement is awaited.
  bool is_complete() const { return pending_.empty(); }
  const control::JobResult& result() const { return result_; }

 private:
  control::JobResult result_;
  std::set<Incarnation> pending_;  // have not acknowledged it
};

}  // namespace cpprun
