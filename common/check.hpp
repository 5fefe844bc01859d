// CPPRUN_CHECK: an assertion about our own code that stays on in release.
//
// For what we may do wrong, never for what the world may do (that is Result<T>). A failed check
// prints the condition and its place on stderr and aborts; the reaper process then clears the
// workers away.
#pragma once

namespace cpprun {

[[noreturn]] void check_failed(const char* condition, const char* file, int line);

}  // namespace cpprun

#define CPPRUN_CHECK(condition) \
  ((condition) ? static_cast<void>(0) : ::cpprun::check_failed(#condition, __FILE__, __LINE__))
