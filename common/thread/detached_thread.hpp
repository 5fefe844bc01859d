// Threads that nobody joins.
#pragma once

#include <functional>

#include "common/result.hpp"

namespace cpprun {

// Starts a detached thread with all signals blocked: another thread of the program handles them.
// `run` must own or share everything it uses. Error (System) if the system cannot start a thread.
Status start_detached_thread(std::function<void()> run);

}  // namespace cpprun
