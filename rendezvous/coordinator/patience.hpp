// Patience: when a coordinator looks at its deadlines. One that comes late has slept (frozen,
// suspended, starved); then mail is read before anybody is judged by it (R11), but not for ever.
//
// Thinks; no clock. The server and the simulator hold one per Coordinator.
#pragma once

#include <chrono>
#include <optional>

#include "common/time.hpp"

namespace cpprun {

class Patience {
 public:
  // A timer that is this late was slept through; reading what came meanwhile takes this long.
  static constexpr Duration kSleptThrough = std::chrono::milliseconds(200);
  static constexpr Duration kReadMailFirst = std::chrono::milliseconds(50);

  // When to look, given the core's nearest deadline.
  Instant look_at(Instant deadline) const { return reading_until_.value_or(deadline); }

  // At the time of look_at(): may the core judge now? If not, look again.
  bool may_judge(Instant now, Instant deadline) {
    const Instant due = look_at(deadline);
    if (now < due) return false;
    reading_until_.reset();
    if (now - due <= kSleptThrough) return true;
    reading_until_ = now + kReadMailFirst;
    return false;
  }

 private:
  std::optional<Instant> reading_until_;
};

}  // namespace cpprun
