// LauncherCommand: a command line as people type it, brought down to what cpprun reads. No I/O.
//
// Known in front of it: variables, `env`, `srun` with its options, torchrun and cpprun by any path,
// `python -m torch.distributed.run` and `.launch`. Other launchers have options of their own.
#pragma once

#include <string>
#include <vector>

#include "common/result.hpp"

namespace cpprun::ctl {

struct LauncherCommand {
  std::vector<std::string> words;      // what stands behind `cpprun`
  std::vector<std::string> variables;  // NAME=value words that stood before it
};

Result<LauncherCommand> read_launcher_command(const std::vector<std::string>& typed);

}  // namespace cpprun::ctl
