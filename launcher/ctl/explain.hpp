// `cpprunctl explain`: a command line of cpprun, read as cpprun reads it, in words.
#pragma once

#include <string>
#include <vector>

#include "common/result.hpp"

namespace cpprun {

// `words`: what would stand behind `cpprun`, perhaps with `cpprun`, `torchrun` or `--` before it.
// Nothing is started. An error is the one that cpprun would show.
Result<std::string> explain(std::vector<std::string> words);

}  // namespace cpprun
