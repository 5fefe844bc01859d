// WayBack: the way from a quiet thread back onto the agent's loop, as long as there is one. Private
// to daemon. post() is for any thread, all else for the loop's.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <functional>
#include <memory>
#include <mutex>
#include <utility>

namespace cpprun {

class WayBack {
 public:
  explicit WayBack(boost::asio::io_context& loop) : loop_(&loop) {}
  void close() {
    const std::lock_guard lock(mutex_);
    loop_ = nullptr;
  }
  // `call` is not made any more once close() was called, also if it was posted before.
  static void post(const std::shared_ptr<WayBack>& way, std::function<void()> call) {
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
