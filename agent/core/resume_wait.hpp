// ResumeWait: how long an agent waits for its coordinator after it was suspended past the end of
// its worker lease, perhaps with all other nodes of the job (scontrol suspend). The workers do not
// run meanwhile: the reaper process, which was suspended too, stops them (SIGSTOP) until the lease
// is extended. If the coordinator has not counted the node as lost, it answers the agent's ping on
// the connection from before, and the round continues (R11).
//
// Pure: no clock.
#pragma once

#include <chrono>

#include "common/limits/suspension.hpp"
#include "common/time.hpp"

namespace cpprun::agent {

class ResumeWait {
 public:
  // An event comes at `now`, and the timer for `due` has not run. From this delay on the agent was
  // suspended: a busy machine delays a timer by less.
  void begin_if_late(Instant now, Instant due) {
    if (now - due >= kLate) ends_at_ = now + limits::kResumeAnswerTimeout;
  }
  // The agent stops the workers if they are still without a lease then.
  Instant ends_at() const { return ends_at_; }
  bool is_open(Instant now) const { return now < ends_at_; }
  void end() { ends_at_ = Instant(); }

 private:
  static constexpr Duration kLate = std::chrono::seconds(1);

  Instant ends_at_;
};

}  // namespace cpprun::agent
