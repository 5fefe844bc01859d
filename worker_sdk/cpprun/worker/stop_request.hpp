// The stop flag of this process: SIGTERM sets it (MainOptions::handles_sigterm), should_stop()
// reads it. Internal. Lock-free, hence usable in signal handlers and in any thread. Nothing clears
// it.
#pragma once

namespace cpprun::worker {

void request_stop() noexcept;
bool stop_requested() noexcept;

}  // namespace cpprun::worker
