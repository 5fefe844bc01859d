// SignalCatcher: the signals that this agent catches, as events of the loop. Thread: the loop's.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <functional>
#include <utility>
#include <vector>

namespace cpprun {

class SignalCatcher {
 public:
  // `number`: the signal that came; `meant`: the one that the agent acts on.
  using OnSignal = std::function<void(int number, int meant)>;

  SignalCatcher(boost::asio::io_context& loop, OnSignal on_signal)
      : signals_(loop), on_signal_(std::move(on_signal)) {}

  // Catches `signals`, and `stop_signals`, which mean SIGTERM. Call once.
  void start(const std::vector<int>& signals, const std::vector<int>& stop_signals);

 private:
  void wait();

  boost::asio::signal_set signals_;
  const OnSignal on_signal_;
  std::vector<int> stop_signals_;
};

}  // namespace cpprun
