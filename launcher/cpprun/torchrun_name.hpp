// cpprun called by the name torchrun, through a link that `cpprunctl install-as` has made: it then
// has torchrun's defaults where they differ from cpprun's. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace cpprun {

// `name`: argv[0].
bool is_called_torchrun(std::string_view name);

// The arguments behind torchrun's defaults: the agent serves MASTER_PORT, failures are printed as
// torchrun prints them, no scheduler supplies options. Options of the user win.
std::vector<std::string> with_torchrun_defaults(const std::vector<std::string>& args);

// torchrun exits with 1 after a signal.
int torchrun_exit_code(int code);

}  // namespace cpprun
