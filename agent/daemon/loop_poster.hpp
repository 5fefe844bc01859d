// LoopPoster: the way from a quiet thread back onto the agent's loop, as long as there is one.
// Private to daemon. post() is for any thread, all else for the loop's.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <functional>
#include <memory>
#include <mutex>
#include <utility>

#include "common/result.hpp"

namespace cpprun {

class LoopPoster {
 public:
  explicit LoopPoster(boost::asio::io_context& loop) : loop_(&loop) {}
  void close() {
    const std::lock_guard lock(mutex_);
    loop_ = nullptr;
  }
  // `call` is not made any more once close() was called, also if it was posted before.
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

// A thread that nobody waits for and that no signal reaches: those are for the agent's own. What it
// uses must be its own or shared with it.

// Error (System): the system has no room for another.
Status start_detached_thread(std::function<void()> run);

}  // namespace cpprun
