// Errors in command lines of cpprunctl, in the form of all its errors. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace cpprun::ctl {

// The command that is meant by a name that is none: a likely typing mistake, or a command of
// another tool, such as kubectl's "describe"; "" if there is none.
std::string nearest_command(std::string_view name, const std::vector<std::string>& commands);

// CLI11's message, reworded. `command`: its whole name ("snapshot prune"); `options`: its
// options with dashes, of which a near one is the hint for an unknown one.
std::string usage_text(const std::string& message, const std::string& command,
                       const std::vector<std::string>& options);

}  // namespace cpprun::ctl
