// Instant and Duration: monotonic time (CLOCK_BOOTTIME in programs, a counter in the simulator).
//
// Arithmetic only, without a clock: callers pass the current time to the cores.
#pragma once

#include <chrono>
#include <compare>
#include <cstdint>

namespace cpprun {

using Duration = std::chrono::nanoseconds;

// Requires: the caller has checked the range.
inline Duration seconds(double value) {
  return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(value));
}
inline double to_seconds(Duration duration) {
  return std::chrono::duration<double>(duration).count();
}

class Instant {
 public:
  constexpr Instant() = default;
  static constexpr Instant from_nanoseconds(int64_t ns) { return Instant(ns); }
  // Later than any other instant; next_deadline() returns it when nothing is pending.
  static constexpr Instant never() { return Instant(INT64_MAX); }

  constexpr int64_t nanoseconds() const { return ns_; }
  constexpr bool is_never() const { return ns_ == INT64_MAX; }
  constexpr auto operator<=>(const Instant&) const = default;

  friend constexpr Instant operator+(Instant at, Duration d) {
    return at.is_never() ? at : Instant(at.ns_ + d.count());
  }
  friend constexpr Instant operator-(Instant at, Duration d) {
    return at.is_never() ? at : Instant(at.ns_ - d.count());
  }
  friend constexpr Duration operator-(Instant a, Instant b) { return Duration(a.ns_ - b.ns_); }

 private:
  explicit constexpr Instant(int64_t ns) : ns_(ns) {}
  int64_t ns_ = 0;
};

// Wall clock time, for summaries and logs. Never compared between nodes to decide anything.
struct WallTime {
  int64_t microseconds = 0;  // since 1970-01-01 UTC
  auto operator<=>(const WallTime&) const = default;
};

}  // namespace cpprun
