// ExitQueue: worker exits in the kernel's order, until the host reports them. An exit may wait a
// moment for its last lines and for its error file; the exits behind it wait too. Thread: the
// loop's.
#pragma once

#include <algorithm>
#include <deque>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/failure/worker_exit.hpp"
#include "common/time.hpp"

namespace cpprun {

class ExitQueue {
 public:
  bool is_empty() const { return ends_.empty(); }

  // The last lines and the error report must come by then; Instant::never(): it needs none. An
  // exit whose report is late keeps the one that it has.
  void push(WorkerExit end, Instant lines_until, Instant error_until) {
    ends_.push_back({std::move(end), lines_until, error_until});
  }

  void on_lines(int local_rank, std::vector<std::string> lines) {
    for (Item& item : ends_) {
      if (item.lines_until.is_never() || item.end.local_rank.value != local_rank) continue;
      item.end.last_lines = std::move(lines);
      item.lines_until = Instant::never();
      return;
    }
  }

  // `pid`: of the worker. No effect for an exit that was reported without it.
  void on_error(int pid, std::optional<ErrorReport> error) {
    for (Item& item : ends_) {
      if (item.error_until.is_never() || item.end.pid != pid) continue;
      item.end.error = std::move(error);
      item.error_until = Instant::never();
      return;
    }
  }

  bool is_ready(Instant now) const { return !ends_.empty() && now >= ready_at(ends_.front()); }
  WorkerExit pop() {
    WorkerExit end = std::move(ends_.front().end);
    ends_.pop_front();
    return end;
  }
  Instant next_deadline() const {
    return ends_.empty() ? Instant::never() : ready_at(ends_.front());
  }

 private:
  struct Item {
    WorkerExit end;
    Instant lines_until;
    Instant error_until;
  };

  static Instant ready_at(const Item& item) {
    Instant at;  // at once
    for (const Instant until : {item.lines_until, item.error_until}) {
      if (!until.is_never()) at = std::max(at, until);
    }
    return at;
  }

  std::deque<Item> ends_;
};

}  // namespace cpprun
