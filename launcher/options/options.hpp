// The launcher's command line: the public entry point. Words and surroundings in, a checked
// AgentConfig out (or a text to show). Nothing is printed here.
#pragma once

#include <span>
#include <string>
#include <variant>
#include <vector>

#include "common/result.hpp"
#include "launcher/options/environment.hpp"
#include "launcher/options/resolve.hpp"

namespace cpprun {

// --help, --version, --print-completion: to stdout, exit 0.
struct TextToShow {
  std::string text;
};

using OptionsResult = std::variant<Launch, TextToShow>;

// `args` without the program's own name, which makes no difference: called as torchrun it behaves
// the same.
Result<OptionsResult> read_options(std::span<const std::string> args,
                                   const Environment& environment);

// An error as the user sees it on stderr: each line with "cpprun: " before it; usage errors as they
// are. Ends with a newline.
std::string shown_error(const Error& error);

}  // namespace cpprun
