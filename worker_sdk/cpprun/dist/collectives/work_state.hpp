// The state behind a Work handle: c10d's Work, the steps after it, and its result. Private to dist.
#pragma once

#include <condition_variable>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "cpprun/dist/collectives/future_work.hpp"
#include "cpprun/dist/group/group_state.hpp"
#include "cpprun/dist/work.hpp"

namespace cpprun::dist {

struct Work::State {
 public:
  // Gloo's sends and receives end only inside wait(), which may be called once; a receive from any
  // rank knows its source afterwards. Gloo's reduce_scatter ends inside wait() too, cannot be
  // aborted, and keeps itself alive. All other works can be polled.
  enum class Kind { Polled, WaitedOnce, FromAnybody, EndsInWait };

  // `native` null: c10d has ended the work already. `finish` runs once, after success, in the first
  // thread that sees the end. `group` null: the work of a callback, whose errors stay as they are.
  State(Kind kind, std::string where, std::shared_ptr<ProcessGroup::State> group,
        c10::intrusive_ptr<c10d::Work> native, std::function<void()> finish);
  ~State();
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  void wait();
  bool wait_for(std::chrono::milliseconds timeout);
  bool is_completed();
  std::exception_ptr exception();
  // Ends after `finish`, with the error that wait() throws. Waits for another thread's wait().
  NativeFuture future();
  // The rank in the group that sent; valid after a receive has ended.
  int source_rank() const { return source_rank_; }

 private:
  void settle();
  std::exception_ptr reported(const std::exception_ptr& error) const;
  void continue_native();
  bool has_ended() const;
  bool is_point_to_point() const;
  void end_with(std::exception_ptr error);
  void start_watcher();

  const Kind kind_;
  const std::string where_;
  const std::shared_ptr<ProcessGroup::State> group_;

  std::mutex waiting_;  // held while a thread waits
  c10::intrusive_ptr<c10d::Work> native_;
  std::function<void()> finish_;
  bool is_continued_ = false;  // `native_` ends after `finish`
  // is_completed() of works that only end in wait() needs a thread that waits for `watched_`.
  std::thread watcher_;
  c10::intrusive_ptr<c10d::Work> watched_;
  int source_rank_ = -1;

  mutable std::mutex mutex_;  // protects the following members
  mutable std::condition_variable ended_now_;
  bool has_ended_ = false;
  std::exception_ptr error_;
};

}  // namespace cpprun::dist
