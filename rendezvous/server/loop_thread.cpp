#include "rendezvous/server/loop_thread.hpp"

#include <pthread.h>

#include <csignal>

namespace cpprun {

void LoopThread::start() {
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  thread_ = std::thread([this] { loop_.run(); });
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
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
