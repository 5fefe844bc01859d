// Shell completion scripts for cpprunctl, made from its verbs. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace cpprun::ctl {

struct VerbHelp {
  std::string name;  // "status", or "snapshot ls"
  std::string help;
  std::vector<std::string> options;  // "--json", "-f"
};

// `shell`: bash, zsh or fish. Requires: one of them.
std::string completion_script(std::string_view shell, const std::vector<VerbHelp>& verbs);

}  // namespace cpprun::ctl
