// LoopThread: a loop of rendezvous/server with a thread of its own beside the agent's.
#pragma once

#include <functional>
#include <thread>

#include "rendezvous/server/loop.hpp"

namespace cpprun {

class LoopThread {
 public:
  LoopThread() { loop_.hold(); }

  ServerLoop& loop() { return loop_; }
  // Before it nothing on the loop runs. Signals are the agent's business: none lands here.
  void start();
  // Runs `last` on the thread, then ends it; nothing is waited for. If it was never started,
  // nothing happens.
  void end(std::function<void()> last);

 private:
  ServerLoop loop_;
  std::thread thread_;
};

}  // namespace cpprun
