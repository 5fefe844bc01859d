// StartTicket: one start of a worker, shared by the spawn thread, which carries it out, and the
// loop, which may cancel it. It names the child from before the child runs its program, so that a
// child that waits for a file system can be killed.
//
// Either the child sees that the start is cancelled before it runs its program, or cancel() sees
// the child. Thread-safe.
#pragma once

#include <signal.h>

#include <mutex>

namespace cpprun {

class StartTicket {
 public:
  // ---- the spawn thread
  bool is_cancelled() const { return __atomic_load_n(&is_cancelled_, __ATOMIC_SEQ_CST) != 0; }
  // There is a child, which has not run its program yet. False: the start was cancelled; the caller
  // ends the child. spawn() needs no call: its child does the same through cells().
  bool begin_child(int pid) {
    __atomic_exchange_n(&child_, pid, __ATOMIC_SEQ_CST);
    return !is_cancelled();
  }
  // The child has ended before it ran its program. Call it before the child is reaped: its pid must
  // not name another process in cancel().
  void on_child_ended() {
    const std::lock_guard lock(mutex_);
    __atomic_store_n(&child_, 0, __ATOMIC_SEQ_CST);
  }
  // For a child that shares this process's memory and may not call functions: it writes its pid
  // into `child`, and then reads `is_cancelled`.
  struct Cells {
    int* child = nullptr;
    const int* is_cancelled = nullptr;
  };
  Cells cells() { return {&child_, &is_cancelled_}; }

  // ---- the loop
  // 0: there is no child yet.
  int child() const { return __atomic_load_n(&child_, __ATOMIC_SEQ_CST); }
  // Kills the child if there is one. False: there is none, and none will run a program.
  bool cancel() {
    const std::lock_guard lock(mutex_);
    __atomic_store_n(&is_cancelled_, 1, __ATOMIC_SEQ_CST);
    const int pid = child();
    return pid != 0 && ::kill(pid, SIGKILL) == 0;
  }

 private:
  std::mutex mutex_;  // held while the loop signals the child, so that no thread reaps it meanwhile
  // Integers for built-in atomics, because the child calls no functions.
  int child_ = 0;
  int is_cancelled_ = 0;
};

}  // namespace cpprun
