// What goes through one group: whether it is still sound, how many calls were compared, and what
// the backend still needs. Private to dist; part of ProcessGroup::State. Any thread.
#pragma once

#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include <torch/csrc/distributed/c10d/Work.hpp>

namespace cpprun::dist {

class GroupHealth {
 public:
  // After a lost peer or a timeout the connections are closed and the ranks out of step: nothing
  // that follows can be right. The first error is kept.
  void mark_broken(const std::string& why) {
    const std::lock_guard lock(mutex_);
    if (broken_.empty()) broken_ = why;
  }
  // Empty: sound.
  std::string broken() const {
    const std::lock_guard lock(mutex_);
    return broken_;
  }

  // Sends and receives that were dropped before their end: Gloo still points to their buffers, and
  // a connection whose next message has none does not go on. Kept until the group is destroyed.
  void keep(c10::intrusive_ptr<c10d::Work> work) {
    const std::lock_guard lock(mutex_);
    pending_.push_back(std::move(work));
  }
  void drop_pending() {
    std::vector<c10::intrusive_ptr<c10d::Work>> last;
    const std::lock_guard lock(mutex_);
    last.swap(pending_);
  }

  // The same on all ranks, as they make the same calls.
  uint64_t next_comparison() { return next(comparisons_); }
  uint64_t next_barrier() { return next(barriers_); }

 private:
  uint64_t next(uint64_t& counter) {
    const std::lock_guard lock(mutex_);
    return counter++;
  }

  mutable std::mutex mutex_;
  std::string broken_;
  std::vector<c10::intrusive_ptr<c10d::Work>> pending_;
  uint64_t comparisons_ = 0;
  uint64_t barriers_ = 0;
};

}  // namespace cpprun::dist
