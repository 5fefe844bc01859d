// JobControl: SIGTSTP, which Ctrl-Z sends, suspends the workers with this process, until SIGCONT
// (fg, bg) continues them. The workers have sessions of their own, so the terminal does not reach
// them. Thread: the loop's.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <functional>
#include <utility>

namespace cpprun {

class JobControl {
 public:
  // Calls its argument, which returns when this process runs again, while the workers are stopped.
  using SuspendDuring = std::function<void(const std::function<void()>& suspend_this)>;

  JobControl(boost::asio::io_context& loop, SuspendDuring suspend_during)
      : signal_(loop), suspend_during_(std::move(suspend_during)) {}

  // Call once. No effect if this process ignores SIGTSTP, as a program of a shell without job
  // control may.
  void start();

 private:
  void wait();

  boost::asio::signal_set signal_;
  const SuspendDuring suspend_during_;
};

}  // namespace cpprun
