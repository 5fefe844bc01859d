// Splits the command line as Python's argparse would for torchrun: options, then the script, then
// its own words, which nobody looks at. Adds what PET_* variables say. Checks the form of values (a
// number, one of the words), not their sense.
//
// Pure. Its errors are of kind Usage and begin with the usage line; a bad PET_ flag alone is
// BadValue (exit 1), as under torchrun.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/result.hpp"
#include "launcher/options/environment.hpp"
#include "launcher/options/option_table.hpp"

namespace cpprun {

struct Token {
  const OptionRow* option = nullptr;
  std::string value;     // flags: "true" or "false"; numbers: in plain decimal form
  std::string spelling;  // as the user wrote it: "--nproc_per_node", "-r", "PET_RDZV_ID"
};

struct TokenList {
  std::vector<Token> options;  // variables that count first, then the command line in its order
  std::vector<std::string> program;  // script and its arguments; empty only with a question
  const OptionRow* question =
      nullptr;  // --help, --version, --print-completion (its word is the last option)
};

// `args` without the program's own name.
Result<TokenList> tokenize(std::span<const std::string> args, const Environment& environment);

// An Error of kind Usage around `text`.
Error usage_error(std::string_view text);

}  // namespace cpprun
