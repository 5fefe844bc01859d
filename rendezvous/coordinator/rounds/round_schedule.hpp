// RoundSchedule: how long a job waits for more nodes before its first round, and how often a
// running round restarts for a newcomer.
//
// A core: no I/O, no clock.
#pragma once

#include <algorithm>
#include <cstddef>
#include <optional>

#include "common/limits/rendezvous.hpp"
#include "common/time.hpp"
#include "rendezvous/protocol/control/control.hpp"

namespace cpprun {

class RoundSchedule {
 public:
  explicit RoundSchedule(const control::JobSpec& job_spec)
      : last_call_(job_spec.last_call),
        expected_nodes_(static_cast<size_t>(job_spec.expected_nodes)),
        scale_up_interval_(job_spec.scale_up_interval) {}

  void on_arrival(Instant now) { arrived_at_ = now; }
  void on_enough_nodes(Instant now) {
    if (!enough_since_) enough_since_ = now;
  }
  void on_too_few_nodes() { enough_since_.reset(); }
  void on_round(size_t nodes) { largest_round_ = std::max(largest_round_, nodes); }
  // The round restarts for a newcomer.
  void on_growth(Instant now) { (now >= after_interval(grew_at_) ? grew_at_ : replaced_at_) = now; }

  // The first round forms by then, with the `ready` nodes that are here: by default when all nodes
  // are here that the scheduler starts, or, if their number is unknown, when no node has come for a
  // second. With too few nodes: never.
  Instant last_call_deadline(size_t ready) const {
    if (!enough_since_) return Instant::never();
    if (last_call_ >= Duration{}) return *enough_since_ + last_call_;
    if (expected_nodes_ > 0) {
      return ready < expected_nodes_ ? *enough_since_ + limits::kExpectedNodesWait : *enough_since_;
    }
    return std::min(arrived_at_ + limits::kLastCall, *enough_since_ + limits::kLastCallMax);
  }

  // When a round of `nodes` may restart for a newcomer. The place of a lost node need not wait for
  // the interval of growth, but has an interval of its own: a node that comes and goes in a loop
  // restarts the round at most twice in an interval.
  Instant growth_deadline(size_t nodes) const {
    const bool has_vacancy = nodes < largest_round_;
    return has_vacancy ? std::min(after_interval(grew_at_), after_interval(replaced_at_))
                       : after_interval(grew_at_);
  }

 private:
  Instant after_interval(std::optional<Instant> last) const {
    return last ? *last + scale_up_interval_ : Instant{};
  }

  const Duration last_call_;     // negative: by default
  const size_t expected_nodes_;  // 0: unknown
  const Duration scale_up_interval_;
  Instant arrived_at_;                   // the last new node
  std::optional<Instant> enough_since_;  // at least the minimum of nodes is ready
  std::optional<Instant> grew_at_;       // last restart for a newcomer
  std::optional<Instant> replaced_at_;   // last restart for a node in a lost node's place
  size_t largest_round_ = 0;             // in nodes, of all rounds so far
};

}  // namespace cpprun
