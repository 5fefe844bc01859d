#include "rendezvous/server/loop_thread.hpp"

#include <exception>
#include <utility>

#include "common/thread/blocked_signals.hpp"

namespace cpprun {

void LoopThread::start(std::function<void(const std::string& why)> on_failure) {
  on_failure_ = std::move(on_failure);
  const BlockedSignals blocked;
  thread_ = std::thread([this] { run(); });
}

void LoopThread::run() {
  for (;;) {
    try {
      return loop_.run();
    } catch (const std::exception& error) {
      on_failure_(error.what());
    }
  }
}

void LoopThread::end(std::function<void()> last) {
  if (!thread_.joinable()) return;
  loop_.post([this, last = std::move(last)] {
    last();
    loop_.stop();  // run() would wait for timers that are still armed
  });
  thread_.join();
}

}  // namespace cpprun
