// The signals that end a program, as a descriptor.
#pragma once

#include "common/machine/unique_fd.hpp"
#include "common/result.hpp"

namespace cpprun {

// Blocks the signals, and returns the signalfd that delivers them, which is non-blocking. An
// ignored one (nohup) stays ignored.
Result<UniqueFd> open_end_signals();

}  // namespace cpprun
