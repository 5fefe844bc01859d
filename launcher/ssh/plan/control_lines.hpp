// What passes between the launcher of --hosts and an agent with --stdin-control. Pure.
//
// Launcher to the agent's stdin, in lines:
//   secret HEX            the job's secret; at most once
//   variable HEX          NAME=VALUE for the environment; any number
//   end                   ends the header; the agent now checks its options
//   begin                 all hosts are there: the job begins
//   signal N              act as if this process got signal N
// The end of the stream means that the launcher is gone.
//
// Agent to stdout, before all other output and on a line of its own: hello_line().
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/result.hpp"

namespace cpprun::ssh {

// `variables`: NAME=VALUE.
std::string control_header(std::string_view secret, const std::vector<std::string>& variables);
inline constexpr std::string_view kBeginLine = "begin\n";
std::string signal_line(int number);

// An empty line comes first, because a login shell may leave its last line unfinished.
std::string hello_line(std::string_view version);
// The version of a line (without its newline) that is a hello; nothing for other text.
std::optional<std::string> version_of_hello(std::string_view line);

struct ControlLine {
  enum class Kind { Secret, Variable, End, Begin, Signal } kind = Kind::End;
  std::string text;  // Secret, Variable
  int signal = 0;
};

// A line without its newline. Error (Protocol): it is none of the above.
Result<ControlLine> parse_control_line(std::string_view line);

}  // namespace cpprun::ssh
