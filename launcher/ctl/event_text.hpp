// One event as a line for people. Pure text.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace cpprun::ctl {

// "14:03:59.113  node0  rank 1 (pid 4711) was killed by SIGKILL", with its end. An event that this
// version does not know is shown with its fields. Nothing, if `line` is no event. Control
// characters in texts of workers are shown as '?'.
std::optional<std::string> event_text(std::string_view line);

}  // namespace cpprun::ctl
