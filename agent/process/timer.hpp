// Timer: one deadline on the loop, as an Instant. A new deadline replaces the old one. No callback
// comes after the timer's destruction.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <functional>
#include <memory>

#include "agent/process/clock.hpp"

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
    timer_.async_wait(
        [this, alive = std::weak_ptr<int>(lifetime_), at](boost::system::error_code error) {
          if (error || alive.expired() || at != at_) return;
          at_ = Instant::never();
          on_time_();
        });
  }

 private:
  boost::asio::steady_timer timer_;
  std::function<void()> on_time_;
  Instant at_ = Instant::never();
  std::shared_ptr<int> lifetime_ =
      std::make_shared<int>();  // shared: pending handlers test whether this object still exists
};

}  // namespace cpprun
