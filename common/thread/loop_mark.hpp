// LoopMark: marks the calling thread as one that runs a loop and must not block, for the check that
// it never does. Unblocking: what the marked thread does meanwhile cannot block, although the check
// would refuse it.
//
// The check (tests/support/loop_check.cpp) is linked into a program of the tests only. There the
// kernel refuses system calls that may wait for a file system or a child, on marked threads. In
// every other program a mark is a variable of the thread.
#pragma once

namespace cpprun {

class LoopMark {
 public:
  LoopMark();
  ~LoopMark();
  LoopMark(const LoopMark&) = delete;

  // Whether the calling thread must not block now. Also for signal handlers.
  static bool is_forbidden();
};

class Unblocking {
 public:
  // `why`: the reason why it cannot block; for the reader.
  explicit Unblocking(const char* why);
  ~Unblocking();
  Unblocking(const Unblocking&) = delete;
};

// Called once for each marked thread, on it. Does nothing; the check replaces it.
void refuse_blocking_calls();

}  // namespace cpprun
