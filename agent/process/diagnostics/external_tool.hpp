// Runs a helper tool (gdb, py-spy) and takes what it says: bounded in time and size, without a
// shell. The one place of Boost.Process.
//
// Blocks: for threads that may wait, never the loop's.
#pragma once

#include <string>
#include <vector>

#include "common/result.hpp"
#include "common/time.hpp"

namespace cpprun {

// Path of the program on our own PATH; "" if it is not there.
std::string find_tool(const std::string& name);

// stdout and stderr of `program` in one text, cut after `bytes_max`; its stdin is empty. After
// `takes` it is killed, and what it has said by then is the answer. Error (System): it could not be
// started.
Result<std::string> run_tool(const std::string& program, const std::vector<std::string>& arguments,
                             Duration takes, size_t bytes_max);

}  // namespace cpprun
