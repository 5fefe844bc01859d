// RedirectWait: how long a coordinator that was restarted at the job's endpoint waits for the
// standby to announce itself (R17).
//
// The standby takes the job over before its own worker lease ends, and then announces itself. If it
// has not done so by then, it is dead too, and the coordinator may form a round. A core.
#pragma once

#include "common/limits/rendezvous.hpp"
#include "common/time.hpp"

namespace cpprun {

class RedirectWait {
 public:
  // A node has registered that knows a standby. Only the first call begins the wait.
  void begin(Instant now, Duration lease) {
    if (deadline_.is_never() && !is_over_) deadline_ = now + lease + limits::kRedirectTimeout;
  }
  void on_time(Instant now) {
    if (now < deadline_) return;
    deadline_ = Instant::never();
    is_over_ = true;
  }
  bool is_on() const { return !deadline_.is_never(); }
  Instant next_deadline() const { return deadline_; }

 private:
  Instant deadline_ = Instant::never();
  bool is_over_ = false;
};

}  // namespace cpprun
