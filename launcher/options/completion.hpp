// Completion scripts for shells, made from the option table.
#pragma once

#include <string>
#include <string_view>

namespace cpprun {

// `shell`: bash, zsh or tcsh.
std::string completion_script(std::string_view shell);

}  // namespace cpprun
