// Timer: one deadline on the loop, as an Instant. A new deadline replaces the old one. No callback
// comes after the timer's destruction. Thread: the loop's.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <functional>
#include <utility>

#include "common/lifetime.hpp"
#include "common/machine/clock.hpp"

namespace cpprun {

class Timer {
 public:
  Timer(boost::asio::io_context& loop, std::function<void()> on_time)
      : timer_(loop), on_time_(std::move(on_time)) {}

  Instant at() const { return at_; }

  void set(Instant at) {  // never: no deadline
    if (at == at_) return;
    at_ = at;
    timer_.cancel();
    if (at.is_never()) return;
    timer_.expires_after(at - boot_now());
    // Asio still calls the handler of a wait that ended just before its cancellation; then the
    // deadline differs or the timer is destroyed.
    timer_.async_wait(lifetime_.guard([this, at](boost::system::error_code error) {
      if (error || at != at_) return;
      at_ = Instant::never();
      on_time_();
    }));
  }

 private:
  boost::asio::steady_timer timer_;
  std::function<void()> on_time_;
  Instant at_ = Instant::never();
  Lifetime lifetime_;
};

}  // namespace cpprun
