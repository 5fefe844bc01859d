// CoordinatorLink: the agent's connection to a coordinator, and what the agent knows of the
// coordinator that leads its job: its term, its address, and whether it is dead (R4, R13, R16 to
// R18). Pure.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "agent/core/effects.hpp"
#include "common/endpoint.hpp"
#include "common/ids.hpp"
#include "rendezvous/protocol/control/control.hpp"

namespace cpprun::agent {

class CoordinatorLink {
 public:
  // Requires: !is_connected().
  void on_connected(const Endpoint& peer);
  void on_disconnected() { is_connected_ = is_registered_ = false; }
  // False: the job has had a newer coordinator since (R13). The agent leaves this one.
  bool on_registered(Term term, Effects& effects);
  void on_wait(const control::Wait& message) {
    knows_standby_ = message.standby || (knows_standby_ && message.awaits_redirect);
  }
  // `is_blank`: this node was in no round.
  void on_redirect(const control::Redirect& message, bool is_blank, Effects& effects);
  // The election names `place` as the coordinator's address (R18).
  void on_led_from(const Endpoint& place, Effects& effects);
  // No process listens at these places. True: the coordinator is dead.
  bool on_refused(const std::vector<Endpoint>& places);
  // This node leads the job from now on. Returns its term.
  Term begin_leading();

  bool is_connected() const { return is_connected_; }
  bool is_registered() const { return is_registered_; }  // on this connection
  // Messages on this connection do not count.
  bool is_ignored() const { return is_ignored_; }
  // The number of this connection among all of this agent; the first is 0.
  int64_t number() const { return connections_ - 1; }
  // The newest one.
  Term term() const { return term_; }
  bool is_leading() const { return is_leading_; }
  // The coordinator is dead, or the process at its address knows whether it is that coordinator.
  bool has_evidence() const { return has_evidence_ || led_by_ == peer_; }
  // Another node leads the job now, or is its standby.
  bool knows_standby() const { return knows_standby_; }

 private:
  bool is_connected_ = false;
  bool is_registered_ = false;
  bool is_ignored_ = false;
  bool has_warned_ = false;    // of an older term; reset by a coordinator with a current one
  int64_t connections_ = 0;    // so far
  Endpoint peer_;              // of the current connection, or of the last one
  Endpoint led_by_;            // the coordinator that accepted the last registration
  bool has_evidence_ = false;  // the coordinator at led_by_ is dead
  bool is_leading_ = false;    // this node's own coordinator leads the job now
  bool knows_standby_ = false;
  Term term_;
};

}  // namespace cpprun::agent
