// `cpprunctl explain`: describes what a command line of cpprun does.
#pragma once

#include <string>
#include <vector>

#include "agent/core/config.hpp"
#include "common/result.hpp"

namespace cpprun {

// `words`: the arguments of `cpprun`, or a whole command line with the launcher in it
// (launcher_command.hpp). Starts nothing. An error is the one that cpprun would show: print it with
// shown_error().
Result<std::string> explain(const std::vector<std::string>& words);

}  // namespace cpprun

namespace cpprun::ctl {

// What would run, where the nodes meet, where output goes, and how that differs from torchrun with
// the same arguments. Several lines; ends with a newline. Pure.
std::string explanation(const AgentConfig& config);

}  // namespace cpprun::ctl
