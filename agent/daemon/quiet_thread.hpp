// A thread that nobody waits for and that no signal reaches: those are for the agent's own. What it
// uses must be its own or shared with it.
#pragma once

#include <functional>

#include "common/result.hpp"

namespace cpprun {

// Error (System): the system has no room for another.
Status start_quiet_thread(std::function<void()> run);

}  // namespace cpprun
