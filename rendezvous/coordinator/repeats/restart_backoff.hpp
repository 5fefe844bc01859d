// RestartBackoff: delays the next round of a job whose rounds fail in quick succession and without
// progress (--restart-backoff). The first restart comes at once; the second waits, and each further
// one twice as long, up to a limit.
//
// The count is part of control::PastFailures, so the next coordinator continues with it.
//
// A core: no I/O, no clock.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "common/time.hpp"
#include "rendezvous/coordinator/repeats/failure_repeats.hpp"
#include "rendezvous/protocol/control/control.hpp"

namespace cpprun {

class RestartBackoff {
 public:
  // `first`: the first delay; zero: there is none.
  explicit RestartBackoff(Duration first) : first_(first) {}

  void on_round_formed(Instant now) {
    formed_at_ = now;
    end();
  }
  // The round is over, and another may follow. `past`: as it was before this round.
  void on_round_over(Instant now, control::StopCause cause, const JobProgress& made,
                     control::PastFailures& past);
  void on_time(Instant now) {
    if (now >= until_) end();
  }
  // The next round may form at once.
  void end() { until_ = Instant::never(); }

  // No round may form yet.
  bool is_on() const { return !until_.is_never(); }
  Instant next_deadline() const { return until_; }
  // From the end of the last round to the next one; zero: is_on() is false.
  Duration delay() const { return is_on() ? delay_ : Duration{}; }
  // Why no round forms yet. Requires: is_on().
  std::string text() const;

 private:
  const Duration first_;
  std::optional<Instant> formed_at_;  // the newest round; empty: another coordinator formed it
  Instant until_ = Instant::never();
  Duration delay_{};
  int64_t restarts_ = 0;  // for which delay_ is
};

// The delay before restart number `restarts` of those in quick succession.
Duration restart_delay(Duration first, int64_t restarts);

}  // namespace cpprun
