// CPPRUN_CHECK: an assertion about our own code that stays on in release builds.
//
// For bugs in cpprun only; external errors are a Result<T>. A failed check prints the condition and
// its place on stderr and aborts. The reaper process then kills the workers.
#pragma once

namespace cpprun {

[[noreturn]] void check_failed(const char* condition, const char* file, int line);

}  // namespace cpprun

#define CPPRUN_CHECK(condition) \
  ((condition) ? static_cast<void>(0) : ::cpprun::check_failed(#condition, __FILE__, __LINE__))
