// Threads that are never joined.
#pragma once

#include <functional>

#include "common/result.hpp"

namespace cpprun {

// Starts a detached thread with all signals blocked: another thread of the program handles them.
// `run` must own or share everything it uses. Error (System) if the system cannot start a thread.
//
// `run` should not throw. An exception that leaves it, such as std::bad_alloc, ends this thread
// with an error on stderr, and the program continues: a caller that waits for a result of the
// thread needs a deadline, which threads that may block need anyway.
Status start_detached_thread(std::function<void()> run);

}  // namespace cpprun
