#include "agent/core/grant.hpp"

#include <algorithm>
#include <chrono>

namespace cpprun::agent {

int64_t Grant::on_ping_sent(Instant now) {
  if (in_flight_.size() == kInFlightMax) in_flight_.pop_front();
  in_flight_.push_back(Sent{++last_seq_, now});
  return last_seq_;
}

bool Grant::on_pong(int64_t seq, Duration grant) {
  while (!in_flight_.empty() && in_flight_.front().seq < seq) in_flight_.pop_front();
  if (in_flight_.empty() || in_flight_.front().seq != seq) return false;
  Instant deadline = in_flight_.front().at + grant;
  in_flight_.pop_front();
  if (deadline <= deadline_) return false;
  deadline_ = deadline;
  longest_ = std::max(longest_, grant);
  return true;
}

Duration Grant::notice() const {
  return std::min<Duration>(longest_ / 2, std::chrono::seconds(1));
}

}  // namespace cpprun::agent
