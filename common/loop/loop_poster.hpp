// LoopPoster: posts calls from other threads to a loop, as long as the receiver lives.
//
// Threads: post() may be called on any thread, close() on the loop's only. The receiver and the
// other threads share it.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <functional>
#include <memory>
#include <mutex>
#include <utility>

namespace cpprun {

class LoopPoster {
 public:
  explicit LoopPoster(boost::asio::io_context& loop) : loop_(&loop) {}
  // The receiver calls it at its end.
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

}  // namespace cpprun
