// Python's string.Template.safe_substitute(), which torchrun applies to worker arguments and line
// prefixes.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace cpprun::agent {

using Macros = std::vector<std::pair<std::string_view, std::string>>;

// Replaces ${name} and $name of known macros, and "$$" by "$"; keeps everything else.
std::string safe_substitute(std::string_view text, const Macros& macros);

}  // namespace cpprun::agent
