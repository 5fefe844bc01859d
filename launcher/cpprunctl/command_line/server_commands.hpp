// The command line of the commands that serve or join a rendezvous: serve and rendezvous-client.
#pragma once

#include "launcher/cpprunctl/command_line/command.hpp"

namespace cpprun::ctl {

// Parsing sets `run`, which must outlive `app`.
void add_server_commands(CLI::App& app, RunCommand& run);

}  // namespace cpprun::ctl
