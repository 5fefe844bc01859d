// Runs an external tool (gdb, py-spy) and captures its output: bounded in time and size, without a
// shell. The only user of Boost.Process.
//
// Blocks: not for the loop's thread.
#pragma once

#include <string>
#include <vector>

#include "common/result.hpp"
#include "common/time.hpp"

namespace cpprun {

// Path of the program on the agent's own PATH; "": not found.
std::string find_tool(const std::string& name);

// Returns stdout and stderr of `program` in one text, cut after `bytes_max`; stdin is empty. Kills
// the program after `takes` and returns its output so far. Error (System): the program could not be
// started.
Result<std::string> run_tool(const std::string& program, const std::vector<std::string>& arguments,
                             Duration takes, size_t bytes_max);

}  // namespace cpprun
