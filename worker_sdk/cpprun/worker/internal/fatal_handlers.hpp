// Reports ends that no `catch` sees: std::terminate and fatal signals (SIGSEGV, SIGBUS, SIGFPE,
// SIGILL, SIGABRT). A handler writes the report, restores the default action and raises the signal
// again, so the process still ends by the same signal.
#pragma once

namespace cpprun::worker {

// Call it once, in the main thread, after set_error_file. Leaves a signal alone that already has a
// handler (of a sanitizer or a debugging library). `rank` is for the line on stderr.
void install_fatal_handlers(int rank);
// The rank that a report names, when the process has another one in a new round.
void set_reported_rank(int rank);

}  // namespace cpprun::worker
