// The place in a program where a worker's error arose, read from its traceback. Pure.
#pragma once

#include <string>
#include <vector>

#include "common/failure/worker_exit.hpp"

namespace cpprun {

// "train.py:4 in load" for the deepest frame of a Python traceback that is in no installed package,
// else the deepest one; "" without a traceback. `lines` may hold several tracebacks: the last
// counts. Of a fault dump (fault_dump.hpp) the stack of the thread that failed counts.
std::string error_location(const std::vector<std::string>& lines);

// The same for a worker: of its error file, else of its last lines.
std::string error_location(const WorkerExit& end);

}  // namespace cpprun
