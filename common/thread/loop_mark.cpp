#include "common/thread/loop_mark.hpp"

#include <ctime>

namespace cpprun {
namespace {

struct Mark {
  bool is_checked = false;  // refuse_blocking_calls() was called
  bool is_loop = false;
  int unblocking = 0;  // nested
};

thread_local Mark mark;

}  // namespace

LoopMark::LoopMark() {
  ::tzset();  // reads a file; localtime_r() on the loop reads none after it
  if (!mark.is_checked) refuse_blocking_calls();
  mark.is_checked = mark.is_loop = true;
}

LoopMark::~LoopMark() { mark.is_loop = false; }

bool LoopMark::is_forbidden() { return mark.is_loop && mark.unblocking == 0; }

Unblocking::Unblocking(const char*) { ++mark.unblocking; }

Unblocking::~Unblocking() { --mark.unblocking; }

// A program that defines it replaces it.
__attribute__((weak)) void refuse_blocking_calls() {}

}  // namespace cpprun
