// What a command line of cpprun would do, in words. Pure.
#pragma once

#include <string>

#include "agent/core/config.hpp"

namespace cpprun::ctl {

// Some lines: what would run, where it meets, where output goes, and where that differs from what
// torchrun does with the same words. Ends with a newline.
std::string explanation(const AgentConfig& config);

}  // namespace cpprun::ctl
