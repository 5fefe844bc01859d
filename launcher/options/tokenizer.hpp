// Splits the command line as Python's argparse does for torchrun: options, the script, and the
// script's arguments, which stay unread. Adds the values of PET_* variables. Checks the form of
// values (a number, one of the choices), not their meaning.
//
// Pure. Its errors are of kind Usage and begin with the usage line, except that a malformed PET_
// flag is BadValue (exit 1), as under torchrun.
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
  std::string spelling;  // as the user typed it: "--nproc_per_node", "-r", "PET_RDZV_ID"
};

struct TokenList {
  std::vector<Token> options;        // the variables that apply, then the command line in its order
  std::vector<std::string> program;  // the script and its arguments; empty only with a question
  // --help, --version, or --print-completion with its shell as the last option.
  const OptionRow* question = nullptr;
  bool is_brief = false;  // the question is a letter: -h
};

// `args` excludes the program's own name.
Result<TokenList> tokenize(std::span<const std::string> args, const Environment& environment);

// An error of kind Usage with `text`.
Error usage_error(std::string_view text);

}  // namespace cpprun
