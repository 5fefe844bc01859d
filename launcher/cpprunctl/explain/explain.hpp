// `cpprunctl explain`: a command line of cpprun, read as cpprun reads it, in words.
#pragma once

#include <string>
#include <vector>

#include "agent/core/config.hpp"
#include "common/result.hpp"

namespace cpprun {

// `words`: what would stand behind `cpprun`, perhaps with the launcher before it
// (launcher_command.hpp). Nothing is started. An error of the line is the one that cpprun would
// show: print it by shown_error().
Result<std::string> explain(const std::vector<std::string>& words);

}  // namespace cpprun

namespace cpprun::ctl {

// What a command line of cpprun would do, in words. Pure.

// Some lines: what would run, where it meets, where output goes, and where that differs from what
// torchrun does with the same words. Ends with a newline.
std::string explanation(const AgentConfig& config);

}  // namespace cpprun::ctl
