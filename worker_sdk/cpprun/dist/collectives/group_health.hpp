// GroupHealth: whether a group is broken, its sequence numbers, and unfinished works that the
// backend still needs. Private to dist; part of ProcessGroup::State. Any thread.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include <torch/csrc/distributed/c10d/Work.hpp>

namespace cpprun::dist {

class GroupHealth {
 public:
  // After a lost peer or a timeout the connections are closed and the ranks out of step, so no
  // later call can succeed. Keeps the first error.
  void mark_broken(const std::string& why) {
    const std::lock_guard lock(mutex_);
    if (broken_.empty()) broken_ = why;
  }
  // The first error; empty: the group works.
  std::string broken() const {
    const std::lock_guard lock(mutex_);
    return broken_;
  }

  // Keeps a send or receive that was dropped before its end, until the group is destroyed: Gloo
  // still points to its buffer, and a connection blocks if its next message has no buffer.
  void keep(c10::intrusive_ptr<c10d::Work> work) {
    const std::lock_guard lock(mutex_);
    pending_.push_back(std::move(work));
  }
  void drop_pending() {
    std::vector<c10::intrusive_ptr<c10d::Work>> last;
    const std::lock_guard lock(mutex_);
    last.swap(pending_);
  }

  // Equal on all ranks, because they make the same calls.
  uint64_t next_comparison() { return comparisons_++; }
  uint64_t next_barrier() { return barriers_++; }
  // Other ranks have gone through barriers without this rank.
  void skip_barriers_until(uint64_t next) { barriers_ = std::max<uint64_t>(barriers_, next); }

 private:
  mutable std::mutex mutex_;
  std::string broken_;
  std::vector<c10::intrusive_ptr<c10d::Work>> pending_;
  std::atomic<uint64_t> comparisons_{0}, barriers_{0};
};

}  // namespace cpprun::dist
