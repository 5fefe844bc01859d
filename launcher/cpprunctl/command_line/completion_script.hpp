// Shell completion scripts for cpprunctl, made from its commands. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace cpprun::ctl {

struct CommandHelp {
  std::string name;  // "status", or "snapshot ls"
  std::string help;
  std::vector<std::string> options;  // "--json", "-f"
};

// `shell`: bash, zsh or fish. Requires: one of them.
std::string completion_script(std::string_view shell, const std::vector<CommandHelp>& commands);

}  // namespace cpprun::ctl
