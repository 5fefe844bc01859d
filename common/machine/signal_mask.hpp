// The signals that a process blocks: execve keeps what its parent has blocked.
#pragma once

#include <pthread.h>

#include <csignal>

namespace cpprun {

// For the start of a program: a signal that stays blocked could not stop it. Requires: this process
// has no second thread yet.
inline void unblock_signals() {
  sigset_t none;
  ::sigemptyset(&none);
  ::pthread_sigmask(SIG_SETMASK, &none, nullptr);
}

}  // namespace cpprun
