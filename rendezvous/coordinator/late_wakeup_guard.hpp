// LateWakeupGuard: when a coordinator expires its deadlines. A coordinator whose timer fires late
// was frozen, suspended or starved. It then reads the messages that came meanwhile before it takes
// any node as lost (R11), but not for ever.
//
// Pure: no clock. The server and the simulator hold one per Coordinator.
#pragma once

#include <chrono>
#include <optional>

#include "common/time.hpp"

namespace cpprun {

class LateWakeupGuard {
 public:
  // From this delay on a timer counts as late. Reading the waiting messages takes this long.
  static constexpr Duration kLateWakeup = std::chrono::milliseconds(200);
  static constexpr Duration kDrainInputFirst = std::chrono::milliseconds(50);

  // When to call may_expire(), given the core's nearest deadline.
  Instant look_at(Instant deadline) const { return draining_until_.value_or(deadline); }

  // At the time of look_at(): whether the core may expire its deadlines now. If not, ask again at
  // the new look_at().
  bool may_expire(Instant now, Instant deadline) {
    const Instant due = look_at(deadline);
    if (now < due) return false;
    draining_until_.reset();
    if (now - due <= kLateWakeup) return true;
    draining_until_ = now + kDrainInputFirst;
    return false;
  }

 private:
  std::optional<Instant> draining_until_;
};

}  // namespace cpprun
