// WorkerLease: until when this agent's workers may run (R6), computed from the pings that it sent
// and the pongs that it received.
//
// A pong moves the deadline to the send time of its ping plus the worker lease that the pong
// carries. Counting from the send time keeps the agent's deadline before the coordinator's.
#pragma once

#include <cstdint>
#include <deque>

#include "common/time.hpp"

namespace cpprun::agent {

class WorkerLease {
 public:
  // Returns the sequence number of the ping to send now.
  int64_t on_ping_sent(Instant now);
  // True: the deadline moved.
  bool on_pong(int64_t seq, Duration worker_lease);
  // Forgets pings in flight: the pong comes on the same connection or never.
  void on_disconnected() { in_flight_.clear(); }

  // The workers must be gone by then. Before the first pong: Instant{}.
  Instant deadline() const { return deadline_; }
  // When to send SIGTERM so that workers can exit before the deadline: one second before it, or
  // half of the longest worker lease if that is below 2 s.
  Instant sigterm_at() const { return deadline_ - notice(); }

 private:
  struct Sent {
    int64_t seq;
    Instant at;
  };
  Duration notice() const;

  // A minute of pings; older ones cannot extend the lease.
  static constexpr size_t kInFlightMax = 64;

  std::deque<Sent> in_flight_;
  int64_t last_seq_ = 0;
  Instant deadline_;
  // the longest lease so far: a shortened lease (R18) does not shorten the notice
  Duration longest_{};
};

}  // namespace cpprun::agent
