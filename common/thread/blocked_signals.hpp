// BlockedSignals: blocks all signals in the calling thread, and restores its mask at the end.
// A thread started meanwhile inherits the blocked mask, so no handler of the program runs in it.
#pragma once

#include <pthread.h>

#include <csignal>

namespace cpprun {

class BlockedSignals {
 public:
  BlockedSignals() {
    sigset_t all;
    ::sigfillset(&all);
    // The kernel ends a thread that blocks the signal of a refused system call (loop_mark.hpp).
    ::sigdelset(&all, SIGSYS);
    ::pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~BlockedSignals() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  BlockedSignals(const BlockedSignals&) = delete;

 private:
  sigset_t before_;
};

}  // namespace cpprun
