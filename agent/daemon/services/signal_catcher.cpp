#include "agent/daemon/services/signal_catcher.hpp"

#include <algorithm>
#include <csignal>

namespace cpprun {

void SignalCatcher::start(const std::vector<int>& signals, const std::vector<int>& stop_signals) {
  boost::system::error_code ignored;
  for (int number : signals) signals_.add(number, ignored);
  for (int number : stop_signals) signals_.add(number, ignored);
  stop_signals_ = stop_signals;
  wait();
}

void SignalCatcher::wait() {
  signals_.async_wait([this](const auto& error, int number) {
    if (error) return;
    wait();
    const bool is_stop = std::ranges::count(stop_signals_, number) > 0;
    on_signal_(number, is_stop ? SIGTERM : number);
  });
}

}  // namespace cpprun
