// Converts tokens into typed options and formats the help text, with CLI11.
#pragma once

#include <string>

#include "common/result.hpp"
#include "launcher/options/parsed_options.hpp"
#include "launcher/options/tokenizer.hpp"

namespace cpprun {

// The last value of an option wins.
Result<ParsedOptions> parse_tokens(const TokenList& tokens);

// What --help shows: grouped, both spellings, at most 80 columns.
std::string help_text();

}  // namespace cpprun
