// What a Work handle stands for: c10d's Work, what is to be done after it, how it ended. Private to
// dist.
#pragma once

#include <condition_variable>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "cpprun/dist/group/group_state.hpp"
#include "cpprun/dist/work.hpp"

namespace cpprun::dist {

struct Work::State {
 public:
  // Gloo's sends and receives end only inside a wait, and each may be waited for only once; what
  // came from anybody knows afterwards from whom. Everything else can be asked at any time.
  enum class Kind { Polled, WaitedOnce, FromAnybody };

  // `native` null: c10d has ended it already. `finish` runs once, after a good end, in the thread
  // that asks first.
  State(Kind kind, std::string where, std::shared_ptr<ProcessGroup::State> group,
        c10::intrusive_ptr<c10d::Work> native, std::function<void()> finish);
  ~State();
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  void wait();
  bool wait_for(std::chrono::milliseconds timeout);
  bool is_completed();
  std::exception_ptr exception();
  // Rank in the group that sent, after the end of a receive.
  int source_rank() const { return source_rank_; }

 private:
  void settle();
  bool has_ended() const;
  void end_with(std::exception_ptr error);
  void start_watcher();

  const Kind kind_;
  const std::string where_;
  const std::shared_ptr<ProcessGroup::State> group_;

  std::mutex waiting_;  // held while somebody waits
  c10::intrusive_ptr<c10d::Work> native_;
  std::function<void()> finish_;
  // Waits in place of one who only asks, where asking takes that; `watched_` is what it waits for.
  std::thread watcher_;
  c10::intrusive_ptr<c10d::Work> watched_;
  int source_rank_ = -1;

  mutable std::mutex mutex_;  // of what follows
  mutable std::condition_variable ended_now_;
  bool has_ended_ = false;
  std::exception_ptr error_;
};

}  // namespace cpprun::dist
