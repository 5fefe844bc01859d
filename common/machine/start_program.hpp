// start_program(): runs a program of PATH as a child of this process.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "common/result.hpp"

namespace cpprun {

// The child has no blocked signals, even if this thread has. `out`: its stdout; -1: ours.
// Returns its pid.
Result<pid_t> start_program(std::vector<std::string> words, int out = -1);

}  // namespace cpprun
