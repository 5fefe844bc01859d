#include "rendezvous/server/loop_thread.hpp"

#include "common/thread/blocked_signals.hpp"

namespace cpprun {

void LoopThread::start() {
  const BlockedSignals blocked;
  thread_ = std::thread([this] { loop_.run(); });
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
