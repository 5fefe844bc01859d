// WorkerLease: until when this agent may have workers alive (R6), from the pings it sent and the
// pongs it got.
#pragma once

#include <cstdint>
#include <deque>

#include "common/time.hpp"

namespace cpprun::agent {

// Pings in flight are remembered with their send time; a pong moves the deadline to that time plus
// the worker lease.
class WorkerLease {
 public:
  // Sequence number of the ping to send now.
  int64_t on_ping_sent(Instant now);
  // True if the deadline moved.
  bool on_pong(int64_t seq, Duration worker_lease);
  // Pings of an older connection are never answered on a newer one.
  void on_disconnected() { in_flight_.clear(); }

  // Workers must be gone by then; the beginning of time before the first pong.
  Instant deadline() const { return deadline_; }
  // When TERM is due so that workers have time before the deadline: one second, or half of the
  // longest worker lease if that is below 2 s.
  Instant term_at() const { return deadline_ - notice(); }

 private:
  struct Sent {
    int64_t seq;
    Instant at;
  };
  Duration notice() const;

  static constexpr size_t kInFlightMax =
      64;  // a minute of pings; older ones extend no worker lease

  std::deque<Sent> in_flight_;
  int64_t last_seq_ = 0;
  Instant deadline_;
  Duration longest_{};  // worker lease: a shorter one leaves workers no less time for TERM (R18)
};

}  // namespace cpprun::agent
