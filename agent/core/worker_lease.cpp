#include "agent/core/worker_lease.hpp"

#include <algorithm>
#include <chrono>

namespace cpprun::agent {

int64_t WorkerLease::on_ping_sent(Instant now) {
  if (in_flight_.size() == kInFlightMax) in_flight_.pop_front();
  in_flight_.push_back(Sent{++last_seq_, now});
  return last_seq_;
}

bool WorkerLease::on_pong(int64_t seq, Duration worker_lease) {
  while (!in_flight_.empty() && in_flight_.front().seq < seq) in_flight_.pop_front();
  if (in_flight_.empty() || in_flight_.front().seq != seq) return false;
  Instant deadline = in_flight_.front().at + worker_lease;
  in_flight_.pop_front();
  if (deadline <= deadline_) return false;
  deadline_ = deadline;
  longest_ = std::max(longest_, worker_lease);
  return true;
}

Duration WorkerLease::notice() const {
  return std::min<Duration>(longest_ / 2, std::chrono::seconds(1));
}

}  // namespace cpprun::agent
