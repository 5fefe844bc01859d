// Runs a command of the user's: --node-check, which checks whether this node is good, or
// --exclude-hook, which passes an exclusion on.
#pragma once

#include <string>
#include <vector>

#include "common/time.hpp"

namespace cpprun {

// "": the command has ended with exit code 0; else why not, for people: the last line of its output
// and how it ended. `token`: CPPRUN_TOKEN of the command, by which the reaper process ends what it
// leaves behind when the agent dies. Blocks for `timeout`, and for a second more if SIGKILL does
// not end it at once. Call it on a thread that lives until it returns: the command dies with it.
std::string run_user_command(const std::vector<std::string>& command, const std::string& token,
                             Duration timeout);

}  // namespace cpprun
