// LoopThread: a ServerLoop and the thread that runs it, beside the program's main thread.
#pragma once

#include <functional>
#include <thread>

#include "rendezvous/server/loop.hpp"

namespace cpprun {

class LoopThread {
 public:
  LoopThread() { loop_.hold(); }

  ServerLoop& loop() { return loop_; }
  // Nothing on the loop runs before. The thread blocks all signals: the main thread handles them.
  void start();
  // Runs `last` on the thread, then ends the thread without waiting for pending work. Does nothing
  // if the thread was never started.
  void end(std::function<void()> last);

 private:
  ServerLoop loop_;
  std::thread thread_;
};

}  // namespace cpprun
