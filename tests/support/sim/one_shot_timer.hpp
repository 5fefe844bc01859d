// OneShotTimer: the one timer of a simulated program. One event is planned for the nearest
// deadline; the program looks again when it comes.
#pragma once

#include <functional>
#include <utility>

#include "tests/support/sim/agenda.hpp"

namespace cpprun::sim {

class OneShotTimer {
 public:
  // `rings` when the time of the newest set() has come. Stays where it is: planned events know it.
  OneShotTimer(Agenda& agenda, std::function<void()> rings)
      : agenda_(agenda), rings_(std::move(rings)) {}
  OneShotTimer(const OneShotTimer&) = delete;
  OneShotTimer& operator=(const OneShotTimer&) = delete;

  // `when` is true time. Nothing happens if it is planned for an earlier one already.
  void set(Instant when) {
    if (when.is_never() || when >= set_for_) return;
    set_for_ = when;
    agenda_.at(when, [this, when] {
      if (set_for_ != when) return;  // an earlier one was planned meanwhile
      set_for_ = Instant::never();
      rings_();
    });
  }
  void forget() { set_for_ = Instant::never(); }

 private:
  Agenda& agenda_;
  const std::function<void()> rings_;
  Instant set_for_ = Instant::never();
};

}  // namespace cpprun::sim
