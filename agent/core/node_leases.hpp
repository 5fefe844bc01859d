// NodeLeases: the node lease and the worker lease that this node has from its coordinator, and the
// pings that keep them (R4, R6). An agent whose process is the coordinator has none.
//
// Pure: the caller passes the times.
#pragma once

#include "agent/core/effects.hpp"
#include "agent/core/resume_wait.hpp"
#include "agent/core/worker_lease.hpp"
#include "common/time.hpp"
#include "rendezvous/protocol/control/control.hpp"

namespace cpprun::agent {

class NodeLeases {
 public:
  // The coordinator has leases for this node. Until a registration, and while the coordinator runs
  // in this process, it has none.
  bool exist() const { return heartbeat_ > Duration{}; }

  // Sends the first ping, if the node has got leases.
  void on_registered(Instant now, const control::Registered& message, Effects& effects);
  // A message has come, the connection was made, or the agent begins a new wait for a sign of life.
  void on_heard(Instant now) { heard_at_ = now; }
  // True: the worker lease is longer now.
  bool on_pong(Instant now, const control::Pong& message);
  void on_disconnected();
  // A wait of the previous round is over.
  void begin_round() { resume_wait_.end(); }
  void ping(Instant now, Effects& effects);
  // The next ping goes out before half of the worker lease is over. For coordinators that are
  // elected.
  void ping_sooner(Instant now);

  Instant heard_at() const { return heard_at_; }
  Instant ping_at() const { return ping_at_; }
  // The node lease, of a registered node. Instant::never(): there is none.
  Instant node_lease_ends() const { return exist() ? heard_at_ + lease_ : Instant::never(); }

  // Until when workers may run. Instant::never(): there is no worker lease.
  Instant deadline() const { return exist() ? worker_lease_.deadline() : Instant::never(); }
  // When workers get SIGTERM, so that they can exit before the deadline.
  Instant sigterm_at() const { return exist() ? worker_lease_.sigterm_at() : Instant::never(); }
  // When the agent stops the workers of a round that runs: later, if it awaits an answer.
  Instant stop_at() const;
  // A pong has come lately enough. A coordinator in this process sends none.
  bool are_renewed(Instant now) const { return now < worker_lease_.sigterm_at(); }
  bool hold_workers(Instant now) const { return exist() && now < deadline(); }
  // From now until the deadline, for workers that are stopped.
  Duration grace(Instant now) const;

  // This agent was suspended, and perhaps the others with it. Only an answer on the connection from
  // before proves that the node does not count as lost. `due`: the agent's next deadline.
  bool await_answer(Instant now, Instant due);

 private:
  Duration heartbeat_{};  // zero: there are no leases
  Duration lease_{};
  Instant heard_at_;
  Instant ping_at_ = Instant::never();
  WorkerLease worker_lease_;
  ResumeWait resume_wait_;
};

}  // namespace cpprun::agent
