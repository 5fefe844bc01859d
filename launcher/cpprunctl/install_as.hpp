// `cpprunctl install-as torchrun`: a link by that name to the cpprun beside this program.
#pragma once

#include <string>

#include "common/result.hpp"

namespace cpprun {

struct InstallOptions {
  std::string name;      // torchrun
  std::string dir;       // where the link goes; empty: the folder of this program
  bool is_undo = false;  // remove the link
};

// Makes or removes the link, and prints what it did. A file by that name that is no link to a
// program called cpprun stays, and is an error.
Status install_as(const InstallOptions& options);

}  // namespace cpprun
