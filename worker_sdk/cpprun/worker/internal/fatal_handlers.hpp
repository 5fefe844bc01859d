// Reports of ends that no `catch` sees: std::terminate and fatal signals (SIGSEGV, SIGBUS, SIGFPE,
// SIGILL, SIGABRT). The process still ends by the same signal: the handlers report, restore the
// default action and raise the signal again.
#pragma once

namespace cpprun::worker {

// Call it in the main thread, once, after set_error_file. A signal that somebody handles already (a
// sanitizer, a debugger's library) stays theirs. `rank` is for the line on stderr.
void install_fatal_handlers(int rank);

}  // namespace cpprun::worker
