// LoopThread: a ServerLoop and the thread that runs it, beside the program's main thread.
#pragma once

#include <functional>
#include <string>
#include <thread>

#include "rendezvous/server/loop.hpp"

namespace cpprun {

class LoopThread {
 public:
  LoopThread() { loop_.hold(); }

  ServerLoop& loop() { return loop_; }
  // Nothing on the loop runs before. The thread blocks all signals: the main thread handles them.
  // An exception that leaves a handler, such as std::bad_alloc in the coordinator's core, may leave
  // half a change behind. So `on_failure` must stop what the loop serves, so that its peers learn
  // of the failure, and report the reason. It runs on the thread, then the loop continues: it still
  // carries out what other threads post.
  void start(std::function<void(const std::string& why)> on_failure);
  // Runs `last` on the thread, then ends the thread without waiting for pending work. Does nothing
  // if the thread was never started.
  void end(std::function<void()> last);

 private:
  void run();

  ServerLoop loop_;
  std::function<void(const std::string&)> on_failure_;
  std::thread thread_;
};

}  // namespace cpprun
