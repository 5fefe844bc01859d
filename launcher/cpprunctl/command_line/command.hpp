// What all commands of cpprunctl have in common on the command line.
#pragma once

#include <functional>

#include "common/result.hpp"
#include "launcher/cpprunctl/tls_options.hpp"

namespace CLI {
class App;
}

namespace cpprun::ctl {

// Executes the command that the command line names, and returns cpprunctl's exit code. Each command
// sets it when it is parsed.
using RunCommand = std::function<int()>;

// Prints the error, if there is one, and returns its exit code.
int exit_code_of(const Status& done);

// Exit code 1 for false.
int exit_code_of(const Result<bool>& is_well);

// `options` must outlive the parsing.
void add_tls_options(CLI::App* command, TlsOptions& options);

}  // namespace cpprun::ctl
