// The entry point of command line reading: arguments and environment in, a checked AgentConfig (or
// a text to show) out. Prints nothing.
#pragma once

#include <span>
#include <string>
#include <variant>
#include <vector>

#include "common/result.hpp"
#include "launcher/options/environment.hpp"
#include "launcher/options/resolve.hpp"
#include "launcher/options/tokenizer.hpp"

namespace cpprun {

// For --help, --version, --print-completion: print to stdout, exit with 0.
struct TextToShow {
  std::string text;
};

// --hosts or --hostfile: agents on other hosts resolve the options; see launcher/ssh.
struct LaunchOverSsh {
  ParsedOptions options;
  TokenList tokens;
};

using OptionsResult = std::variant<Launch, TextToShow, LaunchOverSsh>;

// `args` excludes the program's name, which has no influence: the behaviour is the same if called
// as torchrun.
Result<OptionsResult> read_options(std::span<const std::string> args,
                                   const Environment& environment);

// An error as stderr shows it: each line prefixed with "cpprun: ", except usage errors. Ends with a
// newline.
std::string shown_error(const Error& error);

}  // namespace cpprun
