// OneShotTimer: a timer that can be cancelled without a wake-up. Asio's timers still wake the loop
// at the cancelled time, and an idle server must not wake up at all. Thread: the loop's.
#pragma once

#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <cstdint>
#include <functional>
#include <utility>

#include "common/check.hpp"
#include "common/time.hpp"

namespace cpprun {

class OneShotTimer {
 public:
  explicit OneShotTimer(boost::asio::io_context& loop) : fd_(loop) {
    int fd = ::timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    CPPRUN_CHECK(fd >= 0);
    fd_.assign(fd);
  }

  bool is_set() const { return is_set_; }

  // Calls `then` after `delay`. Requires: not set; the same `then` in every call.
  void set(Duration delay, std::function<void()> then) {
    CPPRUN_CHECK(!is_set_);
    is_set_ = true;
    program(std::max(delay, Duration(1)));
    if (is_waiting_) return;
    is_waiting_ = true;
    fd_.async_wait(boost::asio::posix::stream_descriptor::wait_read,
                   [this, then = std::move(then)](boost::system::error_code error) {
                     if (error) return;  // closed; `this` may be destroyed
                     is_waiting_ = false;
                     is_set_ = false;
                     uint64_t count = 0;
                     static_cast<void>(::read(fd_.native_handle(), &count, sizeof count));
                     then();
                   });
  }

  // The wait stays pending and does not end before set() is called again.
  void clear() {
    is_set_ = false;
    program(Duration{});
  }

  void close() {
    boost::system::error_code ignored;
    fd_.close(ignored);
    is_set_ = is_waiting_ = false;
  }

 private:
  void program(Duration delay) {
    itimerspec at{};
    at.it_value.tv_sec = delay.count() / 1'000'000'000;
    at.it_value.tv_nsec = delay.count() % 1'000'000'000;
    ::timerfd_settime(fd_.native_handle(), 0, &at, nullptr);
  }

  boost::asio::posix::stream_descriptor fd_;
  bool is_set_ = false;
  bool is_waiting_ = false;
};

}  // namespace cpprun
