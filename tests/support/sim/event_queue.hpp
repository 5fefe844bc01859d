// EventQueue: virtual time and planned events. Time jumps from event to event; events of one
// instant happen in the order in which they were planned.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <vector>

#include "common/time.hpp"

namespace cpprun::sim {

class EventQueue {
 public:
  using Event = std::function<void()>;

  Instant now() const { return now_; }

  void at(Instant when, Event event) {
    heap_.push_back(Entry{std::max(when, now_), planned_++, std::move(event)});
    std::push_heap(heap_.begin(), heap_.end(), is_later);
  }
  void in(Duration delay, Event event) { at(now_ + delay, std::move(event)); }

  // Runs the next event if it is due by `end`; otherwise advances to `end` and returns false.
  bool step(Instant end) {
    if (heap_.empty() || heap_.front().when > end) {
      now_ = std::max(now_, end);
      return false;
    }
    std::pop_heap(heap_.begin(), heap_.end(), is_later);
    Entry entry = std::move(heap_.back());
    heap_.pop_back();
    now_ = entry.when;
    ++steps_;
    entry.event();
    return true;
  }

  uint64_t steps() const { return steps_; }

 private:
  struct Entry {
    Instant when;
    uint64_t number;
    Event event;
  };
  static bool is_later(const Entry& a, const Entry& b) {
    return a.when != b.when ? a.when > b.when : a.number > b.number;
  }

  std::vector<Entry> heap_;
  Instant now_;
  uint64_t planned_ = 0;
  uint64_t steps_ = 0;
};

}  // namespace cpprun::sim
