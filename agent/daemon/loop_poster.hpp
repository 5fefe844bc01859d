// LoopPoster: posts calls from other threads to the agent's loop, as long as the receiver lives.
// BackgroundWork: runs work on threads of its own and passes the results to the loop. Private to
// daemon. Threads: post() may be called on any thread, everything else on the loop's only.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <functional>
#include <memory>
#include <mutex>
#include <utility>

#include "common/thread/detached_thread.hpp"

namespace cpprun {

class LoopPoster {
 public:
  explicit LoopPoster(boost::asio::io_context& loop) : loop_(&loop) {}
  void close() {
    const std::lock_guard lock(mutex_);
    loop_ = nullptr;
  }
  // After close() no call is made, not even one that was posted before.
  static void post(const std::shared_ptr<LoopPoster>& way, std::function<void()> call) {
    const std::lock_guard lock(way->mutex_);
    if (way->loop_ == nullptr) return;
    boost::asio::post(*way->loop_, [way, call = std::move(call)] {
      if (way->loop_ != nullptr) call();  // close() is called on the loop's thread
    });
  }

 private:
  std::mutex mutex_;
  boost::asio::io_context* loop_;
};

class BackgroundWork {
 public:
  explicit BackgroundWork(boost::asio::io_context& loop)
      : poster_(std::make_shared<LoopPoster>(loop)) {}
  ~BackgroundWork() { poster_->close(); }
  BackgroundWork(const BackgroundWork&) = delete;

  // Calls `work` on a new thread, and then `done` with its result on the loop, unless this object
  // has been destroyed. `work` must own everything it uses. Calls neither after an error.
  template <class Work, class Done>
  Status run(Work work, Done done) {
    return start_detached_thread(
        [way = poster_, work = std::move(work), done = std::move(done)]() mutable {
          LoopPoster::post(way, [done, result = work()] { done(result); });
        });
  }
  // For results before the end, and for calls that must not be made at once.
  const std::shared_ptr<LoopPoster>& poster() const { return poster_; }

 private:
  const std::shared_ptr<LoopPoster> poster_;  // shared with the threads
};

}  // namespace cpprun
