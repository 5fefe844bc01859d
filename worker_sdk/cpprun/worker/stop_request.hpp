// The process's own stop flag: set by SIGTERM under cpprun::main, read by should_stop(). Internal.
//
// Lock-free, so both may be called in a signal handler and in any thread. It is never taken back.
#pragma once

namespace cpprun::worker {

void request_stop() noexcept;
bool stop_requested() noexcept;

}  // namespace cpprun::worker
