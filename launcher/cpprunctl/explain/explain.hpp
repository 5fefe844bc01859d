// `cpprunctl explain`: describes what a command line of cpprun does.
#pragma once

#include <string>
#include <vector>

#include "agent/core/config.hpp"
#include "common/result.hpp"

namespace cpprun {

// `words`: the arguments of `cpprun`, or a whole command line with the launcher in it
// (read_launcher_command()). Starts nothing. An error is the one that cpprun would show: print it
// with shown_error().
Result<std::string> explain(const std::vector<std::string>& words);

}  // namespace cpprun

namespace cpprun::ctl {

// A command line as users type it, reduced to what cpprun reads.
struct LauncherCommand {
  std::vector<std::string> words;      // the arguments of `cpprun`
  std::vector<std::string> variables;  // NAME=value words before it
};
// Recognizes in front: variables, `env`, `srun` with its options, torchrun and cpprun with any
// path, `python -m torch.distributed.run` and `.launch`. Other launchers are errors: their options
// differ. Pure (launcher_command.cpp).
Result<LauncherCommand> read_launcher_command(const std::vector<std::string>& typed);

// What would run, where the nodes meet, where output goes, and how that differs from torchrun with
// the same arguments. Several lines; ends with a newline. Pure.
std::string explanation(const AgentConfig& config);

}  // namespace cpprun::ctl
