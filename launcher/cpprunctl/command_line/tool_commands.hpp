// The command line of the commands that need no running job: doctor, explain, slurm, report, chaos
// and install-as.
#pragma once

#include "launcher/cpprunctl/command_line/command.hpp"

namespace cpprun::ctl {

// Parsing sets `run`, which must outlive `app`.
void add_tool_commands(CLI::App& app, RunCommand& run);

}  // namespace cpprun::ctl
