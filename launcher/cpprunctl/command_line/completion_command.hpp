// The command line of `cpprunctl completion`.
#pragma once

#include "launcher/cpprunctl/command_line/command.hpp"

namespace cpprun::ctl {

// Parsing sets `run`, which must outlive `app`. The script covers the commands that `app` has when
// the command runs.
void add_completion(CLI::App& app, RunCommand& run);

}  // namespace cpprun::ctl
