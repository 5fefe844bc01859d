// LateWakeupGuard: when a coordinator looks at its deadlines. One that comes late has slept
// (frozen, suspended, starved); then mail is read before anybody is judged by it (R11), but not for
// ever.
//
// Thinks; no clock. The server and the simulator hold one per Coordinator.
#pragma once

#include <chrono>
#include <optional>

#include "common/time.hpp"

namespace cpprun {

class LateWakeupGuard {
 public:
  // A timer that is this late was slept through; reading what came meanwhile takes this long.
  static constexpr Duration kLateWakeup = std::chrono::milliseconds(200);
  static constexpr Duration kDrainInputFirst = std::chrono::milliseconds(50);

  // When to look, given the core's nearest deadline.
  Instant look_at(Instant deadline) const { return draining_until_.value_or(deadline); }

  // At the time of look_at(): may the core judge now? If not, look again.
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
