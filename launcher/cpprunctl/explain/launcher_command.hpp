// LauncherCommand: a command line as users type it, reduced to what cpprun reads. No I/O.
//
// Recognizes in front: variables, `env`, `srun` with its options, torchrun and cpprun with any
// path, `python -m torch.distributed.run` and `.launch`. Other launchers are errors: their options
// differ.
#pragma once

#include <string>
#include <vector>

#include "common/result.hpp"

namespace cpprun::ctl {

struct LauncherCommand {
  std::vector<std::string> words;      // the arguments of `cpprun`
  std::vector<std::string> variables;  // NAME=value words before it
};

Result<LauncherCommand> read_launcher_command(const std::vector<std::string>& typed);

}  // namespace cpprun::ctl
