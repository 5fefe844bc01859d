// OneShotTimer: the one timer of a simulated program. It plans one event for the nearest deadline;
// the program checks its deadlines again when the event comes.
#pragma once

#include <functional>
#include <utility>

#include "tests/support/sim/event_queue.hpp"

namespace cpprun::sim {

class OneShotTimer {
 public:
  // Calls `on_due` when the time of the newest set() has come. Not movable: planned events refer to
  // it.
  OneShotTimer(EventQueue& event_queue, std::function<void()> on_due)
      : event_queue_(event_queue), on_due_(std::move(on_due)) {}
  OneShotTimer(const OneShotTimer&) = delete;
  OneShotTimer& operator=(const OneShotTimer&) = delete;

  // `when` is true time. Has no effect if an earlier event is already planned.
  void set(Instant when) {
    if (when.is_never() || when >= set_for_) return;
    set_for_ = when;
    event_queue_.at(when, [this, when] {
      if (set_for_ != when) return;  // an earlier event was planned meanwhile
      set_for_ = Instant::never();
      on_due_();
    });
  }
  void forget() { set_for_ = Instant::never(); }

 private:
  EventQueue& event_queue_;
  const std::function<void()> on_due_;
  Instant set_for_ = Instant::never();
};

}  // namespace cpprun::sim
