// The command line of `cpprunctl snapshot ...`.
#pragma once

#include "launcher/cpprunctl/command_line/command.hpp"

namespace cpprun::ctl {

// Parsing sets `run`, which must outlive `app`.
void add_snapshot_commands(CLI::App& app, RunCommand& run);

}  // namespace cpprun::ctl
