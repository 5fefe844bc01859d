// The signals that a process blocks: execve keeps what its parent has blocked.
#pragma once

#include <pthread.h>

#include <csignal>

namespace cpprun {

// In this thread and those that it starts from now on: a signal that stays blocked could not stop
// the program.
inline void unblock_signals() {
  sigset_t none;
  ::sigemptyset(&none);
  ::pthread_sigmask(SIG_SETMASK, &none, nullptr);
}

}  // namespace cpprun
