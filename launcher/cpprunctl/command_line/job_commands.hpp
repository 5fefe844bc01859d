// The command line of the commands for running jobs: ps, status, logs, stop and others.
#pragma once

#include "launcher/cpprunctl/command_line/command.hpp"

namespace cpprun::ctl {

// Parsing sets `run`, which must outlive `app`.
void add_job_commands(CLI::App& app, RunCommand& run);

}  // namespace cpprun::ctl
