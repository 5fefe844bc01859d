// Converts tokens into typed options; the texts that the option table gives: help (both with
// CLI11), brief help (brief_help.cpp) and completion scripts (completion.cpp).
#pragma once

#include <string>

#include "common/result.hpp"
#include "launcher/options/parsed_options.hpp"
#include "launcher/options/tokenizer.hpp"

namespace cpprun {

// The last value of an option wins. A leading "~/" in a path becomes `home`, unless that is empty.
Result<ParsedOptions> parse_tokens(const TokenList& tokens, std::string_view home);

// What --help shows: grouped, both spellings, at most 80 columns.
std::string help_text();

// What -h shows: the common options with a line each, and the names of the others.
std::string brief_help_text();

// `shell`: bash, zsh or tcsh.
std::string completion_script(std::string_view shell);

}  // namespace cpprun
