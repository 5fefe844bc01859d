// Parses cpprunctl's command line.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace cpprun::ctl {

// Returns an exit code if the program is to end: after help, or because the command line is wrong.
// Prints in both cases. `arguments`: without the program's name.
std::optional<int> parse(CLI::App& app, std::vector<std::string> arguments);

}  // namespace cpprun::ctl
