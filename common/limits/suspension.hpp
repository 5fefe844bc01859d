// Limits after a suspension of processes (scontrol suspend, SIGSTOP, a paused virtual machine).
#pragma once

#include <chrono>

#include "common/time.hpp"

namespace cpprun::limits {

// For the answer of a coordinator, or a message of a node, that was suspended too and runs again a
// little later. Until then the workers do not run.
inline constexpr Duration kResumeAnswerTimeout = std::chrono::seconds(2);
// A reaper process that acts so long after the deadline was suspended; a busy machine delays a
// timer by less.
inline constexpr Duration kReaperLateWakeup = std::chrono::milliseconds(200);

}  // namespace cpprun::limits
