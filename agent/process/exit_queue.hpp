// ExitQueue: worker exits in the kernel's order, until the host reports them. An exit may wait a
// moment for its last lines; the exits behind it wait too. Thread: the loop's.
#pragma once

#include <deque>
#include <string>
#include <vector>

#include "common/failure/worker_exit.hpp"
#include "common/time.hpp"

namespace cpprun {

class ExitQueue {
 public:
  bool is_empty() const { return ends_.empty(); }

  // `lines_until`: the last lines must come by then; Instant::never(): it needs none.
  void push(WorkerExit end, Instant lines_until) { ends_.push_back({std::move(end), lines_until}); }

  void on_lines(int local_rank, std::vector<std::string> lines) {
    for (Item& item : ends_) {
      if (item.lines_until.is_never() || item.end.local_rank.value != local_rank) continue;
      item.end.last_lines = std::move(lines);
      item.lines_until = Instant::never();
      return;
    }
  }

  bool is_ready(Instant now) const {
    return !ends_.empty() &&
           (ends_.front().lines_until.is_never() || now >= ends_.front().lines_until);
  }
  WorkerExit pop() {
    WorkerExit end = std::move(ends_.front().end);
    ends_.pop_front();
    return end;
  }
  Instant next_deadline() const {
    return ends_.empty() ? Instant::never() : ends_.front().lines_until;
  }

 private:
  struct Item {
    WorkerExit end;
    Instant lines_until;
  };
  std::deque<Item> ends_;
};

}  // namespace cpprun
